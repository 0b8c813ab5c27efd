//! What nodes ask each other, and who else is refused.

use quarterdeck_server::Settings;
use serde_json::json;

use super::pair;
use crate::world::World;

const ALIVE: &str = "/api/nodes/alive";

#[tokio::test]
async fn a_path_for_nodes_refuses_whatever_is_not_signed() {
    let [a, _b] = pair(Settings::default()).await;
    let refused = a.get(ALIVE).send().await;
    assert_eq!((refused.refusal().0, refused.refusal().1), (401, "AUTH".into()));
    let boot = a.orchestrator.node_boot().unwrap();
    let forge = |to: &str| format!("qdn1 b boot-b {to} 1 {} - {}", crate::world::now_ms(), "0".repeat(64));
    let forged = forge(boot);
    for header in ["", "x", "qdn1", &forged, "é"] {
        assert_eq!(a.get(ALIVE).with("x-quarterdeck-node", header).send().await.status, 401, "{header}");
    }
    // What is for another process is not looked at.
    let misdirected = a.get(ALIVE).with("x-quarterdeck-node", &forge("boot-a")).send().await;
    assert_eq!(misdirected.status, 421);
    // Not even with a credential of the operators or of a client.
    assert_eq!(a.get(ALIVE).with("authorization", "Bearer sesame").send().await.status, 401);
    // A header that is not a node's spoils a client's request, too: it is not ignored.
    let hello = json!({ "message": "hello" });
    assert_eq!(a.post("/api/chat", &hello).with("x-quarterdeck-node", &forged).send().await.status, 401);
    assert_eq!(a.post("/api/chat", &hello).send().await.status, 200);
}

#[tokio::test]
async fn a_server_of_its_own_answers_no_node() {
    let world = World::new().await;
    assert_eq!(world.get(ALIVE).send().await.status, 401);
    assert_eq!(world.get("/api/nodes").send().await.status, 404);
    let hello = world.post("/api/chat", &json!({ "message": "hello" })).with("x-quarterdeck-node", "x");
    assert_eq!(hello.send().await.status, 200, "there it means nothing");
}

#[tokio::test]
async fn guessing_signatures_is_limited() {
    let settings = Settings { requests_per_minute: 3, trust_proxy: true, ..Settings::default() };
    let [a, _b] = pair(settings).await;
    let mut statuses = Vec::new();
    for _ in 0..5 {
        let guess = a.get(ALIVE).with("x-quarterdeck-node", "x").with("x-forwarded-for", "203.0.113.7");
        statuses.push(guess.send().await.status);
    }
    assert_eq!(statuses, [401, 401, 401, 429, 429]);
}
