//! What is on record a while later: the moment after is not the only one that counts.

use std::time::Duration;

use quarterdeck_contracts::{ConfirmationAnswer, ErrorType, Mode, Scan, Table};
use quarterdeck_runtime::{Call, Client, ClientEvent, Connection, Session};
use serde_json::json;

use super::fixture::{Fixture, error_kind, receive, submit_one};

/// Longer than it takes until the store has heard of everything.
const A_WHILE: Duration = Duration::from_secs(1);

fn call(tool: &str, what: &str) -> Call {
    Call::new(tool, json!({ "what": what }))
}

/// The token of the latest confirmation.
fn token(connection: &Connection) -> String {
    let mut last = None;
    while let Some(event) = connection.try_next_event() {
        if let ClientEvent::Confirmation { request, .. } = event {
            last = request.token;
        }
    }
    last.unwrap().expose().to_owned()
}

#[tokio::test(start_paused = true)]
async fn the_user_may_approve_later_in_voice() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    let told = submit_one(&connection, call("pay", "rent").with_id("provider_0001")).await;
    assert_eq!(error_kind(&told), Some(ErrorType::ConfirmationRequired));
    tokio::time::sleep(A_WHILE).await;
    let outcome =
        receive(session.resolve_confirmation(&token(&connection), ConfirmationAnswer::Approve).await);
    assert_eq!(error_kind(&outcome), None);
    assert_eq!(fixture.effects.times("rent"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_confirmation_that_was_passed_over_can_still_be_approved() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    connection.submit(vec![call("pay", "rent").with_id("provider_0001")]).all().await;
    let token = token(&connection);
    for answer in session.begin_turn(None).answers {
        answer.mark_delivered();
    }
    tokio::time::sleep(A_WHILE).await;
    let outcome = receive(session.resolve_confirmation(&token, ConfirmationAnswer::Approve).await);
    assert_eq!(error_kind(&outcome), None);
    assert_eq!(fixture.effects.times("rent"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_failed_for_now_is_tried_anew_later() {
    let fixture = Fixture::new();
    let (_session, connection) = fixture.open("ann", Mode::Voice).await;
    *fixture.effects.failures.lock().unwrap() = 1;
    let failed = submit_one(&connection, call("flaky_book", "room")).await;
    assert_eq!(error_kind(&failed), Some(ErrorType::Conflict), "which only the model tries again");
    tokio::time::sleep(A_WHILE).await;
    let again = submit_one(&connection, call("flaky_book", "room")).await;
    assert_eq!((error_kind(&again), again.meta.idempotent_cache_hit), (None, None));
    assert_eq!(fixture.effects.times("room"), 2);
}

#[tokio::test(start_paused = true)]
async fn what_a_tool_called_is_not_handed_to_a_model_that_did_not() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    assert!(submit_one(&connection, call("chain", "book room")).await.is_ok());
    tokio::time::sleep(A_WHILE).await;
    let session = resumed_after_restart(&fixture, &session).await;
    assert!(session.connect().try_next_event().is_none());
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_an_id_stands_for_its_outcome_and_not_for_the_confirmation_before_it() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    let pay = || call("pay", "rent").with_id("provider_0001");
    submit_one(&connection, pay()).await;
    assert!(
        receive(session.resolve_confirmation(&token(&connection), ConfirmationAnswer::Approve).await).is_ok()
    );
    tokio::time::sleep(A_WHILE).await;
    let session = resumed_after_restart(&fixture, &session).await;
    let again = submit_one(&session.connect(), pay()).await;
    assert_eq!((error_kind(&again), again.meta.idempotent_cache_hit), (None, Some(true)));
    assert_eq!(fixture.effects.times("rent"), 1);
}

/// A live model is resumed from a moment before its last answers, and may make the write again in the turn after.
#[tokio::test(start_paused = true)]
async fn after_a_restart_a_live_model_may_have_forgotten_its_last_write() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    session.begin_turn(None);
    assert!(submit_one(&connection, call("book", "room").with_id("provider_0001")).await.is_ok());
    tokio::time::sleep(A_WHILE).await;
    let session = resumed_after_restart(&fixture, &session).await;
    session.begin_turn(None);
    let again = submit_one(&session.connect(), call("book", "room").with_id("provider_0002")).await;
    assert_eq!((error_kind(&again), again.meta.idempotent_cache_hit), (None, Some(true)));
    assert_eq!(fixture.effects.times("room"), 1);
}

/// The session as another process on the same store has it.
async fn resumed_after_restart(fixture: &Fixture, session: &Session) -> Session {
    let (ann, snapshot) = (Client::anonymous("ann"), fixture.snapshot.clone());
    fixture.restarted().orchestrator.resume(session.id(), ann, snapshot).await.unwrap()
}

/// The keys of a table.
async fn keys(fixture: &Fixture, table: Table) -> Vec<String> {
    let rows = fixture.store.scan(table, Scan::prefix("", 10_000)).await.unwrap();
    rows.into_iter().map(|(key, _)| key).collect()
}

#[tokio::test(start_paused = true)]
async fn what_handlers_wrote_is_forgotten_when_its_time_has_come() {
    let fixture = Fixture::new();
    let (_session, connection) = fixture.open("ann", Mode::Text).await;
    assert!(submit_one(&connection, call("count", "n")).await.is_ok());
    assert!(submit_one(&connection, call("block", "x")).await.is_ok());
    let now_ms = 1_768_294_800_000;
    fixture.store.sweep(now_ms + 59_999).await.unwrap();
    assert_eq!(keys(&fixture, Table::Blocks).await.len(), 1);
    fixture.store.sweep(now_ms + 60_001).await.unwrap();
    assert!(keys(&fixture, Table::Blocks).await.is_empty(), "a block that has run out");
    assert_eq!(keys(&fixture, Table::Values).await.len(), 1);
    let thirty_days = 30 * 24 * 3_600_000;
    fixture.store.sweep(now_ms + thirty_days + 1).await.unwrap();
    assert!(keys(&fixture, Table::Values).await.is_empty(), "a value that was not written since");
}

#[tokio::test(start_paused = true)]
async fn the_store_remembers_no_more_refusals_than_the_session_does() {
    let fixture = Fixture::new();
    let (_session, connection) = fixture.open("ann", Mode::Voice).await;
    for n in 0..250 {
        let refused = submit_one(&connection, call("typed_only", "x").with_id(format!("call_{n:06}"))).await;
        assert_eq!(error_kind(&refused), Some(ErrorType::ModeRestricted));
    }
    tokio::time::sleep(A_WHILE).await;
    let kept = keys(&fixture, Table::Calls).await;
    assert_eq!(kept.len(), 200);
    assert!(kept[0].ends_with("refused:call_000050"), "{}", kept[0]);
}

#[tokio::test(start_paused = true)]
async fn a_look_up_of_an_earlier_turn_is_stored_only_if_its_id_can_come_again() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    for turn in 1..=3 {
        session.begin_turn(None);
        assert!(submit_one(&connection, call("look", &format!("unnamed {turn}"))).await.is_ok());
        let named = call("look", &format!("named {turn}")).with_id(format!("provider_{turn:06}"));
        assert!(submit_one(&connection, named).await.is_ok());
    }
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(keys(&fixture, Table::Calls).await.len(), 4, "three that are named, and the one of this turn");
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_what_a_message_may_hold_are_on_record_too() {
    let fixture = Fixture::new();
    let (_session, connection) = fixture.open("ann", Mode::Text).await;
    let calls: Vec<_> = (0..130).map(|n| call("look", &format!("thing {n}"))).collect();
    let replies = connection.submit(calls).all().await;
    let answers: Vec<_> = replies.into_iter().map(|reply| reply.into_answer().unwrap()).collect();
    assert_eq!(&*answers[129].call_id, "call_130");
    for answer in answers {
        answer.mark_delivered();
    }
    assert_eq!(fixture.audit.count("tool_execution"), 130);
}

#[tokio::test(start_paused = true)]
async fn a_denial_is_remembered_for_the_id_of_its_call() {
    for mode in [Mode::Text, Mode::Voice] {
        let fixture = Fixture::new();
        let (session, connection) = fixture.open("ann", mode).await;
        let pay = || call("pay", "rent").with_id("provider_0001");
        for reply in connection.submit(vec![pay()]).all().await {
            reply.into_answer().into_iter().for_each(|answer| drop(receive(answer)));
        }
        let token = token(&connection);
        let denied = Some(ErrorType::ConfirmationDenied);
        assert_eq!(
            error_kind(&receive(session.resolve_confirmation(&token, ConfirmationAnswer::Deny).await)),
            denied
        );
        assert_eq!(error_kind(&submit_one(&connection, pay()).await), denied, "the user is not asked again");
        tokio::time::sleep(A_WHILE).await;
        let after = fixture.restarted();
        let session = after
            .orchestrator
            .resume(session.id(), Client::anonymous("ann"), fixture.snapshot.clone())
            .await
            .unwrap();
        assert_eq!(error_kind(&submit_one(&session.connect(), pay()).await), denied);
    }
}
