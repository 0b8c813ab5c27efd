//! Calls as they end.

use quarterdeck_runtime::audit::{AuditEvent, AuditSink};
use serde_json::json;

use super::somebody;
use crate::world::World;

#[tokio::test]
async fn whoever_follows_sees_calls_as_they_end() {
    let world = World::new().await;
    let mut open = world.get("/api/deck/live").open().await;
    open.until(": here").await;
    let (_, client, _) = somebody(&world).await;
    open.until("tool_execution").await;
    open.until(&client).await;
    assert_eq!(open.head().header("content-type"), Some("text/event-stream"));
}

#[tokio::test]
async fn whoever_reads_too_slowly_is_told_what_they_missed() {
    let world = World::new().await;
    let mut open = world.get("/api/deck/live").open().await;
    open.until(": here").await;
    // Longer than any buffer between the two, without a chance to write in between.
    for number in 0..5_000 {
        let fields = json!({ "number": number, "filling": "x".repeat(2_000) });
        let fields = fields.as_object().cloned().unwrap();
        world.feed.record(AuditEvent { event: "e".into(), time: std::time::SystemTime::now(), fields });
    }
    open.until("{\"lost\":").await;
    open.until("\"number\":4999").await;
}

#[tokio::test]
async fn only_so_many_follow_and_none_of_them_holds_up_a_shutdown() {
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
    world.stopped().await;
    assert!(began.elapsed().as_secs() < 5);
}
