//! What has become of saved files, for pages of this machine.

use quarterdeck_server::{Settings, WatchFeed, WatchProblem, WatchStatus};

use crate::http::Ask;
use crate::world::World;

fn failed() -> WatchStatus {
    let problem =
        WatchProblem { source: "tools".into(), text: "error[QD0104]: retrieval tools cannot write".into() };
    WatchStatus { registry: "1.0.old".into(), problems: vec![problem], ..WatchStatus::default() }
}

#[tokio::test]
async fn a_page_is_told_at_once_and_after_each_save() {
    let feed = WatchFeed::new("1.0.old");
    let world = World::watching(Settings::default(), feed.clone()).await;
    let mut open = Ask::new(world.address, "GET", "/api/watch").open().await;
    assert_eq!(open.head().status, 200);
    open.until("\"registry\":\"1.0.old\"").await;
    feed.publish(failed());
    open.until("retrieval tools cannot write").await;
    feed.publish(WatchStatus { registry: "1.0.new".into(), reloads: 1, ..WatchStatus::default() });
    open.until("\"registry\":\"1.0.new\"").await;
    let me = Ask::new(world.address, "GET", "/api/me").send().await;
    assert_eq!(me.json()["watch"], true);
}

#[tokio::test]
async fn without_watch_there_is_no_such_endpoint() {
    let world = World::new().await;
    assert_eq!(Ask::new(world.address, "GET", "/api/watch").send().await.status, 404);
    let me = Ask::new(world.address, "GET", "/api/me").send().await;
    assert_eq!(me.json()["watch"], false);
}

#[tokio::test]
async fn saved_files_are_told_neither_to_other_origins_nor_to_other_machines() {
    let settings = Settings { origins: vec!["https://shop.example".into()], ..Settings::default() };
    let world = World::watching(settings, WatchFeed::new("1.0.old")).await;
    let ask = || Ask::new(world.address, "GET", "/api/watch");
    assert_eq!(ask().with("origin", "https://shop.example").send().await.status, 404, "a listed origin");
    assert_ne!(ask().with("origin", "https://evil.example").send().await.status, 200, "a foreign origin");
    assert_eq!(ask().with("x-forwarded-for", "203.0.113.7").send().await.status, 404, "through a proxy");
    assert_eq!(ask().with("via", "1.1 proxy").send().await.status, 404, "through a proxy");
    let me = Ask::new(world.address, "GET", "/api/me").with("via", "1.1 proxy").send().await;
    assert_eq!(me.json()["watch"], false);
}
