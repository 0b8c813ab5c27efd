//! A user is shut out by their own words only, and not for longer than the site allows.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{ErrorType, Mode, Outcome, ToolResponse};
use quarterdeck_runtime::{Call, Client, Connection, Orchestrator, Policy, Reply, RuntimeParts, find_block};
use serde_json::json;

use super::fixture::{Fixture, error_kind, receive, submit_one};

fn look(what: &str) -> Call {
    Call::new("look", json!({ "what": what }))
}

fn block(what: &str) -> Call {
    Call::new("block", json!({ "what": what }))
}

async fn all(connection: &Connection, calls: Vec<Call>) -> Vec<Arc<ToolResponse>> {
    let replies = connection.submit(calls).all().await;
    replies.into_iter().filter_map(Reply::into_answer).map(receive).collect()
}

#[tokio::test(start_paused = true)]
async fn a_block_is_refused_in_a_turn_in_which_foreign_text_was_read() {
    for mode in [Mode::Text, Mode::Voice] {
        let fixture = Fixture::new();
        let (session, connection) = fixture.open("ann", mode).await;
        assert!(submit_one(&connection, look("poison")).await.is_ok());
        let refused = submit_one(&connection, block("one")).await;
        assert_eq!(error_kind(&refused), Some(ErrorType::Unavailable));
        let Outcome::Failure(error) = &refused.outcome else { unreachable!() };
        assert!(error.message.contains("retrieved text"), "{}", error.message);
        assert!(error.suggestion.is_some());
        // A replayed answer brings the same text again.
        session.begin_turn(None);
        assert!(submit_one(&connection, look("poison")).await.is_ok());
        assert_eq!(error_kind(&submit_one(&connection, block("two")).await), Some(ErrorType::Unavailable));
        // The user's next words are their own.
        session.begin_turn(None);
        assert_eq!(error_kind(&submit_one(&connection, block("three")).await), None);
    }
}

#[tokio::test(start_paused = true)]
async fn within_one_message_the_order_of_the_calls_counts() {
    let fixture = Fixture::new();
    let (_session, connection) = fixture.open("ann", Mode::Text).await;
    let answers = all(&connection, vec![look("poison"), block("one")]).await;
    assert_eq!((error_kind(&answers[0]), error_kind(&answers[1])), (None, Some(ErrorType::Unavailable)));

    let fixture = Fixture::new();
    let (_session, connection) = fixture.open("ann", Mode::Text).await;
    let answers = all(&connection, vec![block("one"), look("later")]).await;
    assert_eq!(error_kind(&answers[0]), None, "nothing had been read when the model asked for it");
}

#[tokio::test(start_paused = true)]
async fn calls_that_read_nothing_foreign_do_not_count() {
    let fixture = Fixture::new();
    let (_session, connection) = fixture.open("ann", Mode::Text).await;
    assert!(submit_one(&connection, Call::new("toss", json!({ "what": "coin" }))).await.is_ok());
    assert!(submit_one(&connection, Call::new("book", json!({ "what": "room" }))).await.is_ok());
    assert_eq!(error_kind(&submit_one(&connection, block("one")).await), None);
}

#[tokio::test(start_paused = true)]
async fn a_refused_look_up_does_not_stand_in_the_way() {
    let fixture = Fixture::new();
    let (_session, connection) = fixture.open("ann", Mode::Text).await;
    let refused = submit_one(&connection, Call::new("look", json!({ "wat": 1 }))).await;
    assert_eq!(error_kind(&refused), Some(ErrorType::Validation));
    assert_eq!(error_kind(&submit_one(&connection, block("one")).await), None);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_was_called_by_a_tool_counts_and_is_refused_like_any_other() {
    let fixture = Fixture::new();
    let (_session, connection) = fixture.open("ann", Mode::Text).await;
    let chained = submit_one(&connection, Call::new("chain", json!({ "what": "look poison" }))).await;
    assert!(chained.is_ok());
    assert_eq!(error_kind(&submit_one(&connection, block("one")).await), Some(ErrorType::Unavailable));
    let chained = submit_one(&connection, Call::new("chain", json!({ "what": "block two" }))).await;
    let Outcome::Success(data) = &chained.outcome else { panic!("{chained:?}") };
    assert_eq!(data["error"]["type"], "UNAVAILABLE");
}

#[tokio::test(start_paused = true)]
async fn what_was_read_late_counts_in_the_turn_in_which_it_is_delivered() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    // The connection is gone before the answer arrives, so the next one gets it.
    drop(connection.submit(vec![look("poison")]));
    drop(connection);
    session.begin_turn(None);
    let connection = session.connect();
    assert_eq!(error_kind(&submit_one(&connection, block("one")).await), Some(ErrorType::Unavailable));
    session.begin_turn(None);
    assert_eq!(
        error_kind(&submit_one(&connection, block("two")).await),
        Some(ErrorType::Unavailable),
        "a note tells of it"
    );
    session.begin_turn(None);
    assert_eq!(error_kind(&submit_one(&connection, block("three")).await), None);
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_the_turn_counts_as_having_read_foreign_text() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    assert!(submit_one(&connection, look("poison")).await.is_ok());
    let after = fixture.restarted();
    let client = Client::anonymous("ann");
    let session = after.orchestrator.resume(session.id(), client, fixture.snapshot.clone()).await.unwrap();
    let connection = session.connect();
    assert_eq!(error_kind(&submit_one(&connection, block("one")).await), Some(ErrorType::Unavailable));
    session.begin_turn(None);
    assert_eq!(error_kind(&submit_one(&connection, block("two")).await), None);
}

#[tokio::test(start_paused = true)]
async fn a_fraction_of_a_second_is_rounded_up_and_fails_nothing() {
    for (asked, given) in [("30.2", 31), ("60.0", 60), ("0.001", 1)] {
        let fixture = Fixture::new();
        let (_session, connection) = fixture.open("ann", Mode::Text).await;
        let done = submit_one(&connection, block(asked)).await;
        let Outcome::Success(data) = &done.outcome else { panic!("{done:?}") };
        assert_eq!(data["seconds"], given);
    }
}

#[tokio::test(start_paused = true)]
async fn a_block_is_no_longer_than_the_policy_allows_and_says_how_long_it_is() {
    for (asked, max_block, given) in
        [(60, 3_600, 60), (3_600, 3_600, 3_600), (3_601, 3_600, 3_600), (86_400, 90, 90)]
    {
        let fixture = Fixture::new();
        let policy = Policy { max_block: Duration::from_secs(max_block), ..Policy::default() };
        let orchestrator = Orchestrator::new(RuntimeParts {
            policy,
            clock: fixture.clock.clone(),
            ..RuntimeParts::new(fixture.store.clone())
        });
        let fixture = Fixture { orchestrator, ..fixture };
        let (_session, connection) = fixture.open("ann", Mode::Text).await;
        let done = submit_one(&connection, block(&asked.to_string())).await;
        let Outcome::Success(data) = &done.outcome else { panic!("{done:?}") };
        assert_eq!(data["seconds"], given);
        let is_blocked = async || {
            find_block(&*fixture.store, "ann", fixture.orchestrator.now_ms()).await.unwrap().is_some()
        };
        fixture.clock.advance(Duration::from_secs(given) - Duration::from_millis(1));
        assert!(is_blocked().await);
        fixture.clock.advance(Duration::from_millis(1));
        assert!(!is_blocked().await);
    }
}
