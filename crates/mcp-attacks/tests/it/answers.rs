//! Answers that do not come, or come in another way than they were asked for.

use std::time::{Duration, Instant};

use quarterdeck_runtime::Call;
use serde_json::json;

use crate::memory::within;
use crate::world::{
    BOOKING, LOOK, Settings, World, assert_honest, assert_outcome_unknown, for_model, kind, submit,
};

const MEGABYTE: u64 = 1_000_000;

fn short() -> Settings {
    Settings { timeout: Duration::from_secs(2), ..Settings::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_never_answered_ends_at_its_deadline_and_is_sent_once() {
    let world = World::stdio_with("never-answers", short());
    world.connected().await;
    let start = Instant::now();
    let response = world.call(BOOKING, "it").await;
    assert_outcome_unknown(&response);
    assert!(start.elapsed() >= Duration::from_secs(1), "it was given its time");
    assert_eq!(world.notes.calls(), ["it"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_reading_holds_no_call_past_its_deadline() {
    let world = World::stdio_with("deaf", short());
    world.connected().await;
    let what = "x".repeat(60_000);
    let world = &world;
    within(60 * MEGABYTE, async {
        // More than a pipe takes.
        for round in 0..4 {
            let call = Call::new(LOOK, json!({ "what": format!("{round}{what}") }));
            assert!(kind(&world.submit(call).await).is_some());
        }
    })
    .await;
    assert_eq!(world.notes.count("tools/call"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_in_the_wrong_order_reach_the_calls_that_they_belong_to() {
    let world = World::stdio("wrong-order");
    world.connected().await;
    let calls = ["one", "two", "three", "four"];
    let (first, second, third, fourth) = tokio::join!(
        world.call(BOOKING, calls[0]),
        world.call(BOOKING, calls[1]),
        world.call(BOOKING, calls[2]),
        world.call(BOOKING, calls[3]),
    );
    for (response, what) in [first, second, third, fourth].iter().zip(calls) {
        assert_honest(response, "book", what);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_answer_to_the_same_call_is_dropped() {
    let world = World::stdio("answers-twice");
    world.connected().await;
    let (session, connection) = world.open("ann").await;
    for what in ["one", "two", "three"] {
        session.begin_turn(None);
        let response = submit(&connection, Call::new(BOOKING, json!({ "what": what }))).await;
        assert_honest(&response, "book", what);
        assert!(!for_model(&response).contains("second answer"));
    }
    assert_eq!(world.notes.calls(), ["one", "two", "three"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_with_forged_ids_answer_nothing() {
    for behaviour in ["forged-id", "answers-ahead"] {
        let world = World::stdio(behaviour);
        world.connected().await;
        for what in ["one", "two", "three"] {
            let response = world.call(BOOKING, what).await;
            assert_honest(&response, "book", what);
        }
        assert_eq!(world.notes.calls(), ["one", "two", "three"], "{behaviour}");
        assert_eq!(world.notes.processes().len(), 1, "{behaviour}: the connection is still the first one");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_notifications_costs_no_memory_and_no_answer() {
    for behaviour in ["floods-notifications", "floods-progress"] {
        let world = World::stdio(behaviour);
        world.connected().await;
        let response = within(60 * MEGABYTE, world.call(LOOK, "it")).await;
        assert_honest(&response, "lookup", "it");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_are_no_messages_are_skipped() {
    let world = World::stdio("junk-on-stdout");
    world.connected().await;
    for what in ["one", "two"] {
        assert_honest(&world.call(BOOKING, what).await, "book", what);
    }
    assert_eq!(world.notes.calls(), ["one", "two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_fills_standard_error_is_not_blocked_and_not_kept() {
    let world = World::stdio("fills-stderr");
    world.connected().await;
    let response = within(60 * MEGABYTE, world.call(LOOK, "it")).await;
    assert_honest(&response, "lookup", "it");
}
