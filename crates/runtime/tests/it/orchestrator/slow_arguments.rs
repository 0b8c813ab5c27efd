//! Arguments that take long to judge: judged elsewhere and admitted afterwards, with nothing lost on the way.

use std::time::Duration;

use quarterdeck_contracts::{ErrorType, Mode};
use quarterdeck_runtime::{Call, ClientEvent, DeliveryReason};
use serde_json::json;

use super::fixture::{Fixture, error_kind, receive, submit_one};

/// Too long to be judged on the spot.
fn long_text() -> String {
    "x".repeat(2_000_000)
}

fn long_call(tool: &str) -> Call {
    Call::new(tool, json!({ "what": long_text() })).with_id("call_000001")
}

#[tokio::test(start_paused = true)]
async fn a_message_with_long_arguments_is_answered_whole_and_in_order() {
    let fixture = Fixture::new();
    let (_, connection) = fixture.open("ann", Mode::Text).await;
    let short = Call::new("book", json!({ "what": "room" }));
    let wrong = Call::new("book", json!({ "what": [long_text()] }));
    let replies = connection.submit(vec![long_call("book"), short.clone(), wrong]).all().await;
    let kinds: Vec<_> =
        replies.into_iter().map(|reply| error_kind(&receive(reply.into_answer().unwrap()))).collect();
    assert_eq!(kinds, [None, None, Some(ErrorType::Validation)]);
    assert_eq!((fixture.effects.times(&long_text()), fixture.effects.times("room")), (1, 1));
    let replayed = submit_one(&connection, long_call("book")).await;
    assert_eq!(replayed.meta.idempotent_cache_hit, Some(true));
    assert_eq!(fixture.effects.times(&long_text()), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_while_its_arguments_are_checked_does_not_run() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    let interrupted = connection.submit(vec![long_call("book")]);
    session.interrupt();
    let answer = interrupted.all().await.remove(0).into_answer().unwrap();
    assert!(!answer.is_wanted);
    assert_eq!(error_kind(&receive(answer)), Some(ErrorType::Cancelled));
    let cancelled = connection.submit(vec![long_call("book"), Call::new("book", json!({ "what": "room" }))]);
    session.cancel(&["call_000001"]);
    let kinds: Vec<_> = cancelled
        .all()
        .await
        .into_iter()
        .map(|reply| error_kind(&receive(reply.into_answer().unwrap())))
        .collect();
    assert_eq!(kinds, [Some(ErrorType::Cancelled), None]);
    assert_eq!((fixture.effects.times(&long_text()), fixture.effects.times("room")), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_lost_while_arguments_are_checked_drops_no_call() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Voice).await;
    drop(connection.submit(vec![long_call("book")]));
    drop(connection);
    // Judging takes real time, which the paused clock does not see.
    for _ in 0..1_000 {
        if fixture.effects.times(&long_text()) == 1 {
            break;
        }
        tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(10))).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let connection = session.connect();
    let Some(ClientEvent::Answer { reason: DeliveryReason::Late, answer }) = connection.try_next_event()
    else {
        panic!()
    };
    assert!(receive(answer).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_clamped_argument_is_clamped_before_it_is_checked() {
    let fixture = Fixture::new();
    let (_, connection) = fixture.open("ann", Mode::Voice).await;
    let call = Call::new("look", json!({ "what": long_text(), "top_k": 50 }));
    assert_eq!(error_kind(&submit_one(&connection, call).await), None);
}
