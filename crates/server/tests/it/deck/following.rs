//! The live feed.

use quarterdeck_runtime::audit::{AuditEvent, AuditSink};
use quarterdeck_runtime::{Clock, SystemClock};
use serde_json::json;

use super::client_with_call;
use crate::world::World;

#[tokio::test]
async fn the_live_feed_shows_calls_as_they_end() {
    let world = World::new().await;
    let mut open = world.get("/api/deck/live").open().await;
    open.until(": here").await;
    let (_, client, _) = client_with_call(&world).await;
    open.until("tool_execution").await;
    open.until(&client).await;
    assert_eq!(open.head().header("content-type"), Some("text/event-stream"));
}

#[tokio::test]
async fn a_slow_live_reader_learns_how_many_events_it_lost() {
    let world = World::new().await;
    let mut open = world.get("/api/deck/live").open().await;
    open.until(": here").await;
    // Longer than any buffer between the two, without a chance to write in between.
    for number in 0..5_000 {
        let fields = json!({ "number": number, "filling": "x".repeat(2_000) });
        let fields = fields.as_object().cloned().unwrap();
        world.feed.record(AuditEvent { event: "e".into(), time: SystemClock.now(), fields });
    }
    open.until("{\"lost\":").await;
    open.until("\"number\":4999").await;
}

#[tokio::test]
async fn live_feeds_are_limited_and_do_not_delay_a_shutdown() {
    let mut world = World::new().await;
    let mut followers = Vec::new();
    for _ in 0..16 {
        let mut open = world.get("/api/deck/live").open().await;
        open.until(": here").await;
        followers.push(open);
    }
    assert_eq!(world.get("/api/deck/live").send().await.refusal().0, 429);
    world.stop();
    let began = std::time::Instant::now();
    for mut open in followers {
        open.rest().await;
    }
    world.wait_until_stopped().await;
    assert!(began.elapsed().as_secs() < 5);
}
