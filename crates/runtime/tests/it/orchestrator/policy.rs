//! Confirmation by policy: from the user's own words to the card and the trace.

use std::sync::Arc;

use quarterdeck_contracts::{ConfirmationAnswer, ConfirmationRequest, ErrorType, Mode};
use quarterdeck_runtime::{Call, ClientEvent, Connection, Reply};
use serde_json::{Value, json};

use super::fixture::{Fixture, error_kind, receive, submit_one};

fn draw(what: &str) -> Call {
    Call::new("draw", json!({ "what": what }))
}

fn asked(connection: &Connection) -> Option<ConfirmationRequest> {
    std::iter::from_fn(|| connection.try_next_event()).find_map(|event| match event {
        ClientEvent::Confirmation { request, .. } => Some(request),
        _ => None,
    })
}

/// The steps of the confirmation gate, as the audit log has them.
fn audited_steps(fixture: &Fixture) -> Vec<Value> {
    let events = fixture.audit.0.lock().unwrap();
    let traces =
        events.iter().filter(|event| &*event.event == "tool_execution").map(|event| &event.fields["gates"]);
    let steps = traces.flat_map(|trace| trace.as_array().cloned().unwrap_or_default());
    steps.filter(|step| step["gate"] == "confirmation").collect()
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_user_asked_for_in_this_turn_runs_unasked() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    session.add_user_words("Good morning! Draw a fox, please.");
    assert!(submit_one(&connection, draw("fox")).await.is_ok());
    assert_eq!((fixture.effects.times("fox"), asked(&connection)), (1, None));
    assert_eq!(
        audited_steps(&fixture),
        [json!({ "gate": "confirmation", "decision": "passed", "detail": { "requestedBy": "draw *" } })]
    );

    // What was asked for in an earlier turn was not asked for in this one.
    session.begin_turn(None);
    session.add_user_words("Thank you.");
    let reply = connection.submit(vec![draw("another fox")]).all().await.remove(0);
    assert!(matches!(reply, Reply::AwaitingConfirmation { .. }), "{reply:?}");
    assert_eq!(asked(&connection).unwrap().reason.as_deref(), Some("You did not ask for this just now."));
    assert_eq!(fixture.effects.times("another fox"), 0);
}

#[tokio::test(start_paused = true)]
async fn words_of_models_and_tools_ask_for_nothing() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    session.add_user_words("What is new?");
    // A record that says it, and a model that says it in the arguments.
    submit_one(&connection, Call::new("look", json!({ "what": "draw a fox" }))).await;
    let response = submit_one(&connection, draw("draw a fox")).await;
    assert_eq!(error_kind(&response), Some(ErrorType::ConfirmationRequired));
    let request = asked(&connection).unwrap();
    assert_eq!(request.reason.as_deref(), Some("You did not ask for this just now."));
    let shown = json!(*response);
    assert_eq!(shown["error"]["confirmation_request"]["reason"], "You did not ask for this just now.");
    assert!(!shown.to_string().contains("qdc_"), "no token for a model");
}

#[tokio::test(start_paused = true)]
async fn pieces_of_a_transcript_are_one_sentence() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    for piece in ["Could you make me a pic", "ture of", " a fox?", "\n"] {
        session.add_user_words(piece);
    }
    assert!(submit_one(&connection, draw("fox")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn every_reason_is_on_the_card_and_in_the_trace_also_after_approval() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    session.add_user_words("draw something");
    let call = Call::new("draw", json!({ "what": "weapons", "top_k": 9 }));
    let reply = connection.submit(vec![call]).all().await.remove(0);
    assert!(matches!(reply, Reply::AwaitingConfirmation { .. }), "{reply:?}");
    let request = asked(&connection).unwrap();
    assert_eq!(
        request.reason.as_deref(),
        Some("It touches on “weapons”. “top_k” is 9; up to 7 needs no approval.")
    );
    let token = request.token.unwrap();
    let answer = session.resolve_confirmation(token.expose(), ConfirmationAnswer::Approve).await;
    let gates = Arc::new(answer.trace.clone().unwrap());
    assert!(receive(answer).is_ok());
    let why = json!({ "topics": "sensitive", "over": ["/top_k"] });
    let explained = json!(gates.explain());
    assert_eq!(explained[10], json!({ "gate": "confirmation", "verdict": "approved", "note": why }));
    assert_eq!(audited_steps(&fixture).last().unwrap()["detail"], why);
}

#[tokio::test(start_paused = true)]
async fn the_word_alone_always_asks() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    session.add_user_words("draw a fox");
    let reply =
        connection.submit(vec![Call::new("always_ask", json!({ "what": "x" }))]).all().await.remove(0);
    assert!(matches!(reply, Reply::AwaitingConfirmation { .. }), "{reply:?}");
    assert_eq!(asked(&connection).unwrap().reason, None);
}

#[tokio::test(start_paused = true)]
async fn a_tool_may_call_another_that_needs_no_approval_now() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    let chain = |what: &str| Call::new("chain", json!({ "what": format!("draw {what}") }));
    let refused = submit_one(&connection, chain("one")).await;
    assert!(json!(*refused).to_string().contains("CONFIRMATION_REQUIRED"), "{refused:?}");
    session.begin_turn(None);
    session.add_user_words("Draw two foxes");
    let done = submit_one(&connection, chain("two")).await;
    assert!(json!(*done).to_string().contains("\"did\":\"two\""), "{done:?}");
    assert_eq!((fixture.effects.times("one"), fixture.effects.times("two")), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn endless_words_are_cut_and_judged() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    session.add_user_words(&format!("Draw {}", "é ".repeat(100_000)));
    session.add_user_words("and more");
    assert!(submit_one(&connection, draw("fox")).await.is_ok());
}
