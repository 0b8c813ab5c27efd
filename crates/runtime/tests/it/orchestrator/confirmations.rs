//! Confirmations: asked, answered, and never redeemed twice.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{
    ConfirmationAnswer, ConfirmationRequest, ErrorType, Mode, Outcome, Scan, Table, ToolResponse,
};
use quarterdeck_runtime::{
    Call, Client, ClientEvent, ConfirmationMode, Connection, Reply, Session, call_content,
};
use serde_json::json;

use super::fixture::{Fixture, error_kind, receive, submit_one};

fn pay() -> Call {
    Call::new("pay", json!({ "what": "rent" })).with_id("call_pay_01")
}

fn asked(connection: &Connection) -> ConfirmationRequest {
    while let Some(event) = connection.try_next_event() {
        if let ClientEvent::Confirmation { request, .. } = event {
            return request;
        }
    }
    panic!("no confirmation was requested");
}

fn token(request: &ConfirmationRequest) -> String {
    request.token.as_ref().unwrap().expose().to_owned()
}

async fn answer(session: &Session, token: &str, answer: ConfirmationAnswer) -> Arc<ToolResponse> {
    receive(session.resolve_confirmation(token, answer).await)
}

/// Suspends a call and gives the token that the user would have.
async fn suspended(session: &Session, connection: &Connection) -> String {
    let mut replies = connection.submit(vec![pay()]).all().await;
    let Reply::AwaitingConfirmation { request, .. } = replies.remove(0) else { panic!("it must wait") };
    assert_eq!(request.token, None);
    let _ = session;
    token(&asked(connection))
}

#[tokio::test(start_paused = true)]
async fn in_text_the_call_waits_and_its_one_result_is_the_outcome() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    let token = suspended(&session, &connection).await;
    assert_eq!(fixture.effects.times("rent"), 0);
    let response = answer(&session, &token, ConfirmationAnswer::Approve).await;
    assert!(response.is_ok());
    assert_eq!(fixture.effects.times("rent"), 1);
    let again = answer(&session, &token, ConfirmationAnswer::Approve).await;
    assert_eq!(error_kind(&again), Some(ErrorType::ConfirmationInvalid));
    let redelivered = submit_one(&connection, pay()).await;
    assert_eq!(redelivered.outcome, response.outcome);
    assert_eq!(fixture.effects.times("rent"), 1);
}

#[tokio::test(start_paused = true)]
async fn in_voice_the_call_is_answered_at_once_and_the_outcome_comes_as_a_note() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    let response = submit_one(&connection, pay()).await;
    assert_eq!(error_kind(&response), Some(ErrorType::ConfirmationRequired));
    assert!(!json!(*response).to_string().contains("qdc_"), "no token for a model");
    let request = asked(&connection);
    assert_eq!(request.preview, "pay (what: rent, top_k: 5)");
    let same =
        submit_one(&connection, Call::new("pay", json!({ "what": "rent" })).with_id("call_pay_02")).await;
    assert_eq!(error_kind(&same), Some(ErrorType::ConfirmationRequired));
    assert_eq!(token(&asked(&connection)), token(&request), "the same open request");
    assert!(answer(&session, &token(&request), ConfirmationAnswer::Approve).await.is_ok());
    assert_eq!(fixture.effects.times("rent"), 1);
    let notes = session.begin_turn(None).notes;
    assert_eq!(notes, [r#"pay (call_pay_01) was approved by the user and was done: {"did":"rent"}."#]);
}

#[tokio::test(start_paused = true)]
async fn a_denied_call_does_not_run() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    let token = suspended(&session, &connection).await;
    assert_eq!(
        error_kind(&answer(&session, &token, ConfirmationAnswer::Deny).await),
        Some(ErrorType::ConfirmationDenied)
    );
    assert_eq!(
        error_kind(&answer(&session, &token, ConfirmationAnswer::Approve).await),
        Some(ErrorType::ConfirmationInvalid)
    );
    assert_eq!(fixture.effects.times("rent"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_clicks_execute_once() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    let token = suspended(&session, &connection).await;
    let clicks = (0..100).map(|_| {
        let (session, token) = (session.clone(), token.clone());
        tokio::spawn(async move { error_kind(&answer(&session, &token, ConfirmationAnswer::Approve).await) })
    });
    let mut kinds = Vec::new();
    for click in clicks.collect::<Vec<_>>() {
        kinds.push(click.await.unwrap());
    }
    assert_eq!(kinds.iter().filter(|kind| kind.is_none()).count(), 1);
    assert_eq!(kinds.iter().filter(|kind| **kind == Some(ErrorType::ConfirmationInvalid)).count(), 99);
    assert_eq!(fixture.effects.times("rent"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_token_of_another_client_session_or_time_is_invalid() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    let token = suspended(&session, &connection).await;
    let (other_session, _other) = fixture.open("ann", Mode::Text).await;
    let (other_client, _stranger) = fixture.open("bob", Mode::Text).await;
    let mut changed = token.clone();
    let last = changed.pop().unwrap();
    changed.push(if last == '0' { '1' } else { '0' });
    let approve = ConfirmationAnswer::Approve;
    let mut told = Vec::new();
    for (session, token) in [(&session, &changed), (&other_session, &token), (&other_client, &token)] {
        let response = answer(session, token, approve).await;
        assert_eq!(error_kind(&response), Some(ErrorType::ConfirmationInvalid));
        let quarterdeck_contracts::Outcome::Failure(error) = &response.outcome else { unreachable!() };
        told.push(error.message.clone());
    }
    told.dedup();
    assert_eq!(told.len(), 1, "it does not tell which it was");
    fixture.clock.advance(Duration::from_secs(301));
    assert_eq!(error_kind(&answer(&session, &token, approve).await), Some(ErrorType::ConfirmationExpired));
    assert_eq!(fixture.effects.times("rent"), 0);
}

#[tokio::test(start_paused = true)]
async fn another_registry_voids_what_was_asked_under_the_old_one() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    let token = suspended(&session, &connection).await;
    // The row says which registry it was asked under; a restart with another one is told apart by it.
    let rows = fixture.store.scan(Table::Confirmations, Scan::prefix("", 10)).await.unwrap();
    let (key, mut row) = rows.into_iter().next().unwrap();
    row.value["registryVersion"] = json!("1.0.ffffffff");
    let commit = quarterdeck_contracts::Commit::default().put(Table::Confirmations, key, row.value);
    fixture.store.commit(commit).await.unwrap();
    let response = answer(&session, &token, ConfirmationAnswer::Approve).await;
    assert_eq!(error_kind(&response), Some(ErrorType::ConfirmationInvalid));
}

#[tokio::test(start_paused = true)]
async fn a_new_message_answers_a_suspended_call_as_unapproved() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    let token = suspended(&session, &connection).await;
    let mut start = session.begin_turn(None);
    let told = receive(start.answers.remove(0));
    assert_eq!(error_kind(&told), Some(ErrorType::ConfirmationRequired));
    assert!(
        answer(&session, &token, ConfirmationAnswer::Approve).await.is_ok(),
        "the confirmation is still open"
    );
    assert_eq!(session.begin_turn(None).notes.len(), 1);
    assert_eq!(fixture.effects.times("rent"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_carries_the_trace_of_its_gates() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    let token = suspended(&session, &connection).await;
    let said = |answer: &quarterdeck_runtime::Answer| -> Vec<String> {
        let trace = answer.trace.as_ref().unwrap();
        trace.steps.iter().map(|step| format!("{} {}", step.gate, step.decision)).collect()
    };
    let approved = session.resolve_confirmation(&token, ConfirmationAnswer::Approve).await;
    assert_eq!(said(&approved), ["confirmation approved by the user"]);
    approved.mark_delivered();
    let calls = vec![Call::new("no_such_tool", json!({}))];
    let refused = connection.submit(calls).all().await.remove(0).into_answer().unwrap();
    assert_eq!(said(&refused), ["known_tool refused"]);
}

#[tokio::test(start_paused = true)]
async fn a_suspended_call_does_not_wait_for_ever() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    suspended(&session, &connection).await;
    tokio::time::sleep(Duration::from_secs(301)).await;
    let Some(ClientEvent::Answer { answer, .. }) = connection.try_next_event() else {
        panic!("it must be answered")
    };
    assert_eq!(error_kind(&receive(answer)), Some(ErrorType::ConfirmationExpired));
}

#[tokio::test(start_paused = true)]
async fn a_confirmation_survives_a_restart() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    let token = suspended(&session, &connection).await;
    let id = session.id().to_owned();
    let after = fixture.restarted();
    let session =
        after.orchestrator.resume(&id, Client::anonymous("ann"), fixture.snapshot.clone()).await.unwrap();
    assert!(answer(&session, &token, ConfirmationAnswer::Approve).await.is_ok());
    let after = after.restarted();
    let session =
        after.orchestrator.resume(&id, Client::anonymous("ann"), fixture.snapshot.clone()).await.unwrap();
    assert_eq!(
        error_kind(&answer(&session, &token, ConfirmationAnswer::Approve).await),
        Some(ErrorType::ConfirmationInvalid)
    );
    assert_eq!(fixture.effects.times("rent"), 1);
}

#[tokio::test(start_paused = true)]
async fn the_audit_log_shows_every_step_and_no_token() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    let token = suspended(&session, &connection).await;
    answer(&session, &token, ConfirmationAnswer::Approve).await;
    answer(&session, &token, ConfirmationAnswer::Approve).await;
    let audit = fixture.audit.text();
    for step in ["requested", "approved", "used"] {
        assert!(audit.contains(&format!("\"step\":\"{step}\"")), "{audit}");
    }
    assert!(!audit.contains("qdc_"));
}

#[tokio::test(start_paused = true)]
async fn a_confirmation_is_resolved_by_its_id_once_and_in_its_own_session_alone() {
    let fixture = Fixture::new();
    let (session, _first) = fixture.open("ann", Mode::Text).await;
    let connection = session.connect_with(ConfirmationMode::AnswerFirst);
    let response = submit_one(&connection, pay()).await;
    let Outcome::Failure(error) = &response.outcome else { panic!("it must be asked about") };
    let asked = *error.confirmation_request.clone().unwrap();
    let open = session.find_open_confirmation(&asked).unwrap();
    assert_eq!((&*open.call_id, open.time_left), ("call_pay_01", Duration::from_secs(300)));
    assert_eq!((&open.request, open.content), (&asked, call_content("pay", &json!({ "what": "rent" }))));
    let id = open.id;
    // Another question, another session and another client have another answer.
    let other = ConfirmationRequest { args: json!({ "what": "fine" }), ..asked.clone() };
    assert!(session.find_open_confirmation(&other).is_none());
    let (other_session, _other) = fixture.open("ann", Mode::Text).await;
    let (other_client, _stranger) = fixture.open("bob", Mode::Text).await;
    for other in [&other_session, &other_client] {
        assert!(
            other.find_open_confirmation(&asked).is_none() && other.open_confirmation_by_id(&id).is_none()
        );
        let response = receive(other.resolve_confirmation_by_id(&id, ConfirmationAnswer::Approve).await);
        assert_eq!(error_kind(&response), Some(ErrorType::ConfirmationInvalid));
    }
    assert_eq!(fixture.effects.times("rent"), 0);
    let done = receive(session.resolve_confirmation_by_id(&id, ConfirmationAnswer::Approve).await);
    assert!(done.is_ok());
    let again = receive(session.resolve_confirmation_by_id(&id, ConfirmationAnswer::Approve).await);
    assert_eq!(error_kind(&again), Some(ErrorType::ConfirmationInvalid));
    assert!(
        session.find_open_confirmation(&asked).is_none() && session.open_confirmation_by_id(&id).is_none()
    );
    assert_eq!(fixture.effects.times("rent"), 1);
    assert_eq!(submit_one(&connection, pay()).await.outcome, done.outcome, "its id stands for the outcome");
}

#[tokio::test(start_paused = true)]
async fn a_confirmation_that_has_expired_is_not_open_by_its_id() {
    let fixture = Fixture::new();
    let (session, _first) = fixture.open("ann", Mode::Text).await;
    let connection = session.connect_with(ConfirmationMode::AnswerFirst);
    let response = submit_one(&connection, pay()).await;
    let Outcome::Failure(error) = &response.outcome else { panic!("it must be asked about") };
    let asked = *error.confirmation_request.clone().unwrap();
    let id = session.find_open_confirmation(&asked).unwrap().id;
    fixture.clock.advance(Duration::from_secs(300));
    assert!(
        session.find_open_confirmation(&asked).is_none() && session.open_confirmation_by_id(&id).is_none()
    );
    let late = receive(session.resolve_confirmation_by_id(&id, ConfirmationAnswer::Approve).await);
    assert_eq!(error_kind(&late), Some(ErrorType::ConfirmationExpired));
    assert_eq!(fixture.effects.times("rent"), 0);
}
