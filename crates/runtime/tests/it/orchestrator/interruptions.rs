//! What is cut short: cancelled, interrupted, overtaken.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use quarterdeck_contracts::{ConfirmationAnswer, ErrorType, Mode};
use quarterdeck_runtime::{Call, Client, ClientEvent, Connection, DeliveryReason, Reply};
use serde_json::json;

use super::fixture::{Fixture, error_kind, receive, submit_one};
use super::slow_store::SlowStore;

fn call(tool: &str, what: &str) -> Call {
    Call::new(tool, json!({ "what": what }))
}

/// Submits a call that waits for the user, and gives the token that they would have.
async fn suspended(connection: &Connection) -> String {
    let replies = connection.submit(vec![call("pay", "rent").with_id("provider_0001")]).all().await;
    assert!(matches!(&replies[..], [Reply::AwaitingConfirmation { .. }]));
    let Some(ClientEvent::Confirmation { request, .. }) = connection.try_next_event() else {
        panic!("no confirmation was requested")
    };
    request.token.unwrap().expose().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_write_that_broke_off_half_done_is_not_done_again() {
    let fixture = Fixture::new();
    let (_session, connection) = fixture.open("ann", Mode::Text).await;
    for _ in 0..2 {
        let response = submit_one(&connection, call("broken_off", "room")).await;
        assert_eq!(error_kind(&response), Some(ErrorType::Cancelled));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(fixture.effects.times("room"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_look_up_is_not_tried_again() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    *fixture.effects.failures.lock().unwrap() = 3;
    let batch = connection.submit(vec![call("slow_to_retry", "a").with_id("call_000001")]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    session.cancel(&["call_000001"]);
    let begun = tokio::time::Instant::now();
    let answer = batch.all().await.remove(0).into_answer().unwrap();
    assert_eq!(error_kind(&answer.response), Some(ErrorType::Cancelled));
    assert_eq!(begun.elapsed(), Duration::ZERO, "it stops at once");
    drop(answer);
    assert_eq!(fixture.effects.times("a"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_write_is_reported_once_to_the_next_connection() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    drop(connection.submit(vec![call("slow_book", "room").with_id("call_000001")]));
    tokio::time::sleep(Duration::from_secs(1)).await;
    session.interrupt();
    tokio::time::sleep(Duration::from_secs(2)).await;
    drop(connection);
    let connection = session.connect();
    let Some(ClientEvent::Answer { reason: DeliveryReason::Abandoned, answer }) = connection.try_next_event()
    else {
        panic!("the client is told")
    };
    assert!(answer.response.is_ok() && !answer.is_wanted);
    assert!(connection.try_next_event().is_none(), "once");
}

#[tokio::test(start_paused = true)]
async fn equal_calls_that_wait_for_approval_are_both_answered() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    let twice = vec![
        call("pay_twice", "rent").with_id("call_000001"),
        call("pay_twice", "rent").with_id("call_000002"),
    ];
    let replies = connection.submit(twice).all().await;
    assert!(replies.iter().all(|reply| matches!(reply, Reply::AwaitingConfirmation { .. })));
    let mut tokens = Vec::new();
    while let Some(event) = connection.try_next_event() {
        if let ClientEvent::Confirmation { request, .. } = event {
            tokens.push(request.token.unwrap());
        }
    }
    assert_eq!(tokens.len(), 1, "one request");
    let token = tokens[0].expose();
    assert!(receive(session.resolve_confirmation(token, ConfirmationAnswer::Approve).await).is_ok());
    assert_eq!(fixture.effects.times("rent"), 1, "one yes is one payment");
    let first = submit_one(&connection, call("pay_twice", "rent").with_id("call_000001")).await;
    assert_eq!((error_kind(&first), first.meta.idempotent_cache_hit), (None, Some(true)));
}

#[tokio::test(start_paused = true)]
async fn a_confirmation_that_expires_while_it_is_being_resolved_is_not_left_open() {
    let store = Arc::new(SlowStore::default());
    let fixture = Fixture::on(store.clone(), Arc::default());
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    let token = suspended(&connection).await;
    tokio::time::sleep(Duration::from_secs(295)).await;
    fixture.clock.advance(Duration::from_secs(295));
    store.hangs.store(true, Ordering::Relaxed);
    let click = receive(session.resolve_confirmation(&token, ConfirmationAnswer::Approve).await);
    assert_eq!(error_kind(&click), Some(ErrorType::Transient));
    fixture.clock.advance(Duration::from_secs(10));
    tokio::time::sleep(Duration::from_secs(10)).await;
    let Some(ClientEvent::Answer { answer, .. }) = connection.try_next_event() else {
        panic!("it must be answered")
    };
    assert_eq!(error_kind(&receive(answer)), Some(ErrorType::ConfirmationExpired));
    assert_eq!(fixture.effects.times("rent"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_suspended_call_gets_the_decision_of_another_process() {
    for (word, told) in
        [(ConfirmationAnswer::Approve, None), (ConfirmationAnswer::Deny, Some(ErrorType::ConfirmationDenied))]
    {
        let fixture = Fixture::new();
        let (session, connection) = fixture.open("ann", Mode::Text).await;
        let token = suspended(&connection).await;
        let other = fixture.restarted();
        let there = other
            .orchestrator
            .resume(session.id(), Client::anonymous("ann"), fixture.snapshot.clone())
            .await
            .unwrap();
        assert_eq!(error_kind(&receive(there.resolve_confirmation(&token, word).await)), told);
        let here = receive(session.resolve_confirmation(&token, ConfirmationAnswer::Approve).await);
        assert_eq!(error_kind(&here), Some(ErrorType::ConfirmationInvalid));
        let Some(ClientEvent::Answer { answer, .. }) = connection.try_next_event() else {
            panic!("it must be answered")
        };
        assert_eq!(error_kind(&receive(answer)), told);
        assert_eq!(fixture.effects.times("rent"), u32::from(told.is_none()));
    }
}
