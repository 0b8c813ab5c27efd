//! What operators and models are told of that blocks nothing: slow tools, long answers, full windows.

use std::sync::Arc;

use quarterdeck_contracts::{ConfirmationAnswer, ErrorType, Mode, Outcome, ToolResponse};
use quarterdeck_runtime::{Call, ClientEvent, Connection, Orchestrator, PendingEnd, Policy, RuntimeParts};
use serde_json::json;

use super::fixture::{Fixture, error_kind, receive, submit_one};
use super::log::Log;

fn call(tool: &str, what: &str) -> Call {
    Call::new(tool, json!({ "what": what }))
}

/// A fixture whose voice turns may take a millisecond.
fn impatient() -> Fixture {
    let fixture = Fixture::new();
    let mut policy = Policy::default();
    policy.voice.turn_ms = Some(1);
    let orchestrator = Orchestrator::new(RuntimeParts {
        policy,
        clock: fixture.clock.clone(),
        ..RuntimeParts::new(fixture.store.clone())
    });
    Fixture { orchestrator, ..fixture }
}

#[tokio::test]
async fn a_slow_tool_is_warned_about_and_the_model_told_in_the_next_turn_only() {
    let (log, _guard) = Log::kept();
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    assert!(submit_one(&connection, call("sluggish", "x")).await.is_ok(), "soft limits never block");
    let warning = log.text();
    let warning = warning.lines().find(|line| line.contains("tool was slow")).unwrap();
    assert!(
        warning.contains("WARN") && warning.contains("tool=sluggish") && warning.contains("limit_ms=1"),
        "{warning}"
    );
    assert_eq!(fixture.orchestrator.metrics().json()["tools"]["sluggish"]["overBudget"], 1);

    assert_eq!(session.take_notes(), Vec::<String>::new(), "it is no news that a model must be told at once");
    let notes = session.begin_turn(None).notes;
    let [note] = &notes[..] else { panic!("{notes:?}") };
    assert!(
        note.starts_with("Slow in the last turn: sluggish took ") && note.contains(" of 1 ms."),
        "{note}"
    );
    assert_eq!(session.begin_turn(None).notes, Vec::<String>::new());
}

#[tokio::test]
async fn the_last_turn_of_a_session_is_summed_up_once() {
    for ends_by in ["end", "drop", "completion"] {
        let (log, _guard) = Log::kept();
        let fixture = impatient();
        let (session, connection) = fixture.open("ann", Mode::Voice).await;
        submit_one(&connection, call("sluggish", "x")).await;
        submit_one(&connection, call("look", "y")).await;
        match ends_by {
            "end" => session.end(PendingEnd::with_reason("user_requested")).await,
            "completion" => session.complete_turn(),
            _ => {}
        }
        drop((session, connection));
        let log = log.text();
        let lines = |message: &str| -> Vec<_> { log.lines().filter(|line| line.contains(message)).collect() };
        let [summary] = lines("turn ended")[..] else { panic!("{ends_by}: {log}") };
        assert!(summary.contains("turn=1 calls=2 retrieval=1 tool_ms="), "{summary}");
        assert_eq!(lines("tools of a turn were slow").len(), 1, "{ends_by}: {log}");
    }
}

#[tokio::test]
async fn a_turn_without_calls_is_not_summed_up() {
    let (log, _guard) = Log::kept();
    let fixture = impatient();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    session.complete_turn();
    session.begin_turn(None);
    session.end(PendingEnd::with_reason("user_requested")).await;
    drop((session, connection));
    assert!(!log.text().contains("turn ended"), "{}", log.text());
}

#[tokio::test(start_paused = true)]
async fn turns_are_tracked_up_to_five_for_each_session_that_is_open() {
    let fixture = Fixture::new();
    let tracked = || fixture.orchestrator.metrics().json()["loopDetection"]["totalTurnsTracked"].clone();
    assert_eq!(tracked(), 0);
    let (ann, _connection) = fixture.open("ann", Mode::Text).await;
    let (ben, _other) = fixture.open("ben", Mode::Voice).await;
    assert_eq!(tracked(), 2);
    for _ in 0..20 {
        ann.begin_turn(None);
    }
    assert_eq!(tracked(), 6, "five of the one and one of the other");
    ann.end(PendingEnd::with_reason("user_requested")).await;
    assert_eq!(tracked(), 1);
    ann.begin_turn(None);
    assert_eq!(tracked(), 1, "an ended session is not tracked");
    drop((ben, _other));
    assert_eq!(tracked(), 0);
}

fn partial(response: &ToolResponse) -> Option<bool> {
    match &response.outcome {
        Outcome::Failure(error) => error.partial_side_effects,
        Outcome::Success(_) => None,
    }
}

/// Approves what a suspended call asks for.
async fn approve(
    fixture: &Fixture,
    session: &quarterdeck_runtime::Session,
    connection: &Connection,
) -> Arc<ToolResponse> {
    let _ = fixture;
    let Some(ClientEvent::Confirmation { request, .. }) = connection.try_next_event() else { panic!() };
    let token = request.token.unwrap();
    receive(session.resolve_confirmation(token.expose(), ConfirmationAnswer::Approve).await)
}

#[tokio::test(start_paused = true)]
async fn a_crash_of_a_tool_that_does_not_write_has_done_nothing() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    let read = submit_one(&connection, call("crash_look", "x")).await;
    assert_eq!((error_kind(&read), partial(&read)), (Some(ErrorType::Internal), Some(false)));
    let write = submit_one(&connection, call("crash", "x")).await;
    assert_eq!((error_kind(&write), partial(&write)), (Some(ErrorType::Internal), Some(true)));
    drop(connection.submit(vec![call("crash_asked", "x")]).all().await);
    let approved = approve(&fixture, &session, &connection).await;
    assert_eq!((error_kind(&approved), partial(&approved)), (Some(ErrorType::Internal), Some(false)));
}

#[tokio::test(start_paused = true)]
async fn events_of_handlers_keep_their_names_and_say_where_they_are_from() {
    let fixture = Fixture::new();
    let (_session, connection) = fixture.open("ann", Mode::Text).await;
    for name in ["user_timeout", "tool_execution", "audit_gap"] {
        submit_one(&connection, call("remember", name)).await;
        let events = fixture.audit.0.lock().unwrap();
        let own: Vec<_> = events.iter().filter(|event| event.fields.contains_key("source")).collect();
        let last = own.last().unwrap();
        assert_eq!(&*last.event, name);
        assert_eq!(last.fields["source"], "handler");
        assert_eq!(last.fields["toolId"], "remember");
        assert_eq!(last.fields["data"], json!({ "kept": true }));
    }
}

#[tokio::test(start_paused = true)]
async fn answers_about_the_request_are_no_failures_of_the_tool() {
    let fixture = Fixture::new();
    *fixture.effects.failures.lock().unwrap() = 1;
    let (_session, connection) = fixture.open("ann", Mode::Text).await;
    let conflict = submit_one(&connection, call("flaky_book", "x")).await;
    assert_eq!(error_kind(&conflict), Some(ErrorType::Conflict));
    submit_one(&connection, call("crash", "x")).await;
    let metrics = fixture.orchestrator.metrics();
    let json = metrics.json();
    assert_eq!(json["tools"]["flaky_book"]["errors"], 0);
    assert_eq!(
        json["tools"]["flaky_book"]["errorTypes"],
        json!({ "CONFLICT": 1 }),
        "it is still counted by its type"
    );
    assert_eq!(json["tools"]["crash"]["errors"], 1);
    let counters = metrics.counters();
    let errors = |tool: &str| counters.tools.iter().find(|(id, _)| **id == *tool).unwrap().1.errors;
    assert_eq!((errors("flaky_book"), errors("crash")), (0, 1));
    let text = metrics.prometheus();
    for line in [
        "quarterdeck_tool_request_errors_total{tool=\"flaky_book\",type=\"CONFLICT\"} 1",
        "quarterdeck_tool_errors_total{tool=\"crash\",type=\"INTERNAL\"} 1",
    ] {
        assert!(text.lines().any(|other| other == line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("quarterdeck_tool_errors_total{tool=\"flaky_book\""), "{text}");
}
