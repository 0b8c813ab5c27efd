//! MCP clients behind a load balancer.

use quarterdeck_server::Settings;
use serde_json::{Value, json};

use super::{pair, pair_behind_proxy};
use crate::http::Ask;
use crate::world::World;

fn mcp(world: &World, body: &Value) -> Ask {
    world
        .post("/mcp", body)
        .with("accept", "application/json, text/event-stream")
        .with("authorization", "Bearer sesame")
}

/// Opens a session, and returns its id.
async fn initialize(world: &World) -> String {
    let info = json!({ "name": "desk", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let opened = mcp(world, &body).send().await;
    assert_eq!(opened.status, 200, "{}", opened.text());
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(mcp(world, &ready).with("mcp-session-id", &session).send().await.status, 202);
    session
}

#[tokio::test]
async fn a_session_is_found_from_every_node() {
    let [a, b] = pair(Settings::default()).await;
    let session = initialize(&a).await;
    assert!(session.ends_with("@a"), "{session}");
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    for world in [&a, &b] {
        let mut listed = mcp(world, &list).with("mcp-session-id", &session).open().await;
        listed.until("inputSchema").await;
    }
    let ended =
        b.ask("DELETE", "/mcp").with("mcp-session-id", &session).with("authorization", "Bearer sesame");
    assert_eq!(ended.send().await.status, 204);
    assert_eq!(mcp(&a, &list).with("mcp-session-id", &session).send().await.status, 404);
}

#[tokio::test]
async fn a_session_of_a_node_that_is_not_there_is_not_found() {
    let ([a, b], mut proxy) = pair_behind_proxy(Settings::default()).await;
    let session = initialize(&a).await;
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let unknown = session.replace("@a", "@c");
    assert_eq!(mcp(&b, &list).with("mcp-session-id", &unknown).send().await.status, 404);
    proxy.cut();
    assert_eq!(mcp(&b, &list).with("mcp-session-id", &session).send().await.status, 503, "it may come back");
}

#[tokio::test]
async fn a_client_without_sessions_is_served_by_one_node() {
    let nodes = pair(Settings::default()).await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "probe", "arguments": { "do": "count" }, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let mut pages = Vec::new();
    for world in &nodes {
        let asked = mcp(world, &body)
            .with("mcp-protocol-version", "2026-07-28")
            .with("mcp-method", "tools/call")
            .with("mcp-name", "probe");
        let asked = asked.send().await;
        assert_eq!(asked.status, 200, "{}", asked.text());
        let text = asked.text();
        let at = text.find("/approvals/").unwrap_or_else(|| panic!("{text}"));
        let page: String = text[at..].chars().take_while(|letter| !r#" ."\)"#.contains(*letter)).collect();
        pages.push(page);
    }
    assert_eq!(pages[0], pages[1], "the second request is about the same call of the same session");
    for world in &nodes {
        let shown = world.get(&pages[0]).with("authorization", "Bearer sesame").send().await;
        assert_eq!(shown.status, 200, "{}", shown.text());
        assert!(shown.text().contains("Approve this call?"), "{}", shown.text());
        let other = world.get(&pages[0].replace("/approvals/", "/approvals/c")).send().await;
        assert_eq!(other.status, 404);
    }
}
