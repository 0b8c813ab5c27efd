//! Limits on connections per address.

use std::time::Duration;

use quarterdeck_server::{Network, Settings};
use quarterdeck_websocket::UpgradeError;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::http::Open;
use crate::voice::page::Page;
use crate::world::World;

/// Connections that send nothing.
async fn silent(world: &World, count: usize) -> Vec<TcpStream> {
    let mut open = Vec::new();
    for _ in 0..count {
        open.push(TcpStream::connect(world.address).await.unwrap());
    }
    open
}

/// Waits until a request is answered with this status.
async fn until(world: &World, status: u16) {
    let answered = async {
        while world.get("/healthz").send().await.status != status {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(10), answered).await.unwrap();
}

#[tokio::test]
async fn connections_of_an_address_are_limited_and_refused_with_503() {
    let world = World::with(Settings { connections_per_address: 3, ..Settings::default() }).await;
    let mut open = silent(&world, 3).await;
    // Nothing is read of what it sends, be it much or nothing.
    let refused = Open::read(TcpStream::connect(world.address).await.unwrap()).await.rest().await;
    assert_eq!((refused.refusal().0, &*refused.refusal().1), (503, "TRANSIENT"));
    assert!(refused.header("retry-after").is_some());
    assert_eq!(refused.header("connection"), Some("close"));
    let body = json!({ "message": "x".repeat(20_000) });
    assert_eq!(world.post("/api/chat", &body).send().await.refusal().0, 503);
    open.pop();
    until(&world, 200).await;
    let metrics = world.get("/metrics").send().await.json();
    assert!(metrics["connections"]["refused"].as_u64().unwrap() >= 2, "{metrics}");
    let text = world.get("/metrics?format=prometheus").send().await.text();
    let line = text.lines().find(|line| line.starts_with("quarterdeck_connections_refused_total "));
    assert!(line.is_some_and(|line| !line.ends_with(" 0")), "{line:?}");
    drop(open);
}

#[tokio::test]
async fn refused_connections_do_not_hold_permits() {
    let world = World::with(Settings { connections_per_address: 8, ..Settings::default() }).await;
    let flood = silent(&world, 500).await;
    until(&world, 503).await;
    drop(flood);
    until(&world, 200).await;
}

#[tokio::test]
async fn a_proxy_is_not_limited_and_the_clients_behind_it_are() {
    let settings = Settings { connections_per_address: 1, trust_proxy: true, ..Settings::default() };
    let world = World::with(settings).await;
    let _proxy = silent(&world, 5).await;
    let say = |from: &str, text: &str| {
        world.post("/api/chat", &json!({ "message": text })).with("x-forwarded-for", from)
    };
    let mut first = say("203.0.113.7", "wait").open().await;
    first.until("You said").await;
    // Another client, the same address.
    let refused = say("203.0.113.7:99", "hello").send().await;
    assert_eq!(refused.refusal().0, 429);
    assert!(refused.refusal().2.contains("address"), "{:?}", refused.refusal());
    assert_eq!(say("203.0.113.8", "hello").send().await.status, 200, "another address");
    assert_eq!(say("unknown", "hello").send().await.status, 200, "the proxy's own");
    world.resume.add_permits(1);
    assert!(first.rest().await.text().ends_with("data: [DONE]\n\n"));
    assert_eq!(say("203.0.113.7", "hello").send().await.status, 200);
}

#[tokio::test]
async fn a_network_of_proxies_is_trusted() {
    let local: Network = "127.0.0.0/8".parse().unwrap();
    let settings =
        Settings { connections_per_address: 1, trusted_proxies: vec![local], ..Settings::default() };
    let world = World::with(settings).await;
    let _proxy = silent(&world, 5).await;
    assert_eq!(world.get("/healthz").with("x-forwarded-for", "203.0.113.7").send().await.status, 200);
}

#[tokio::test]
async fn calls_of_one_address_are_limited_across_clients() {
    let settings = Settings { connections_per_address: 2, ..Settings::default() };
    let world = World::with(settings).await;
    let (ann, ben, cleo) = (world.new_client().await, world.new_client().await, world.new_client().await);
    let _ann = Page::open(&world, "/voice", &[("cookie", &ann)]).await;
    let _ben = Page::open(&world, "/voice", &[("cookie", &ben)]).await;
    let refused = Page::try_open(&world, "/voice", &[("cookie", &cleo)]).await;
    assert!(matches!(refused, Err(UpgradeError::Refused { status: 429, .. })));
}
