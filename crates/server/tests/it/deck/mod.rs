//! The operators' API.

mod access;
mod acting;
mod conversations;
mod following;
mod log_level;
mod looking;
mod nodes;
mod playing;
mod upstreams;
mod versions;

use serde_json::{Value, json};

use crate::world::World;

/// A client with an approved call: its cookie, id and session.
async fn client_with_call(world: &World) -> (String, String, String) {
    let cookie = world.new_client().await;
    let asked =
        world.post("/api/chat", &json!({ "message": "call it" })).with("cookie", &cookie).send().await;
    let session = asked.event("start")["messageMetadata"]["sessionId"].as_str().unwrap().to_owned();
    let token = &asked.event("data-confirmation")["data"]["token"];
    let body = json!({ "token": token, "approve": true });
    let approved = world.post("/api/confirmations", &body).with("cookie", &cookie).send().await;
    assert_eq!(approved.status, 200);
    let client = world.client_of(&cookie).await;
    (cookie, client, session)
}

/// Whether the page of the metrics has every series of a scrape.
fn assert_documented(scraped: &str) {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/METRICS.md")).unwrap();
    let series = scraped.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let missing: Vec<_> = series.filter(|name| !page.contains(&format!("| `{name}` |"))).collect();
    assert!(missing.is_empty(), "docs/METRICS.md lacks the series {missing:?}");
}

async fn get(world: &World, path: &str) -> Value {
    let answer = world.get(&format!("/api/deck/{path}")).send().await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.json()
}
