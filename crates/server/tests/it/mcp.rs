//! `/mcp`: who asks, and within which limits.

use quarterdeck_server::{ApiKey, Identity, RequiredCredentials, Settings, TokenKey, TokenRules};
use serde_json::{Value, json};

use crate::http::{Answer, Ask};
use crate::world::{COOKIE_SECRET, World};

fn initialize(name: &str) -> Value {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": name, "version": "1" } },
    })
}

fn list() -> Value {
    json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" })
}

/// A request of a client without a handshake.
fn stateless(method: &str, params: Value) -> Value {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

trait McpAsk {
    fn mcp(&self, body: &Value) -> Ask;
}

impl McpAsk for World {
    fn mcp(&self, body: &Value) -> Ask {
        let ask = self.post("/mcp", body).with("accept", "application/json, text/event-stream");
        if body["params"]["_meta"].is_null() {
            return ask;
        }
        ask.with("mcp-protocol-version", "2026-07-28").with("mcp-method", body["method"].as_str().unwrap())
    }
}

/// The last message of an answer, whether it came alone or in a stream.
fn message(answer: &Answer) -> Value {
    let text = answer.text();
    let line =
        text.lines().rev().find_map(|line| line.strip_prefix("data: ").filter(|data| !data.is_empty()));
    serde_json::from_str(line.unwrap_or(&text)).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn closed() -> Settings {
    Settings {
        required: RequiredCredentials { mcp: Some(true), ..RequiredCredentials::default() },
        ..Settings::default()
    }
}

fn with_issuer() -> Identity {
    let rules = TokenRules::new(TokenKey::Secret(b"shared"), Some("https://issuer.example"), None).unwrap();
    Identity::new(COOKIE_SECRET, Some(rules), vec![ApiKey::new("ci", "sesame-sesame-sesame")])
}

#[tokio::test]
async fn a_program_on_this_machine_shakes_hands_and_lists_the_tools() {
    let world = World::new().await;
    let opened = world.mcp(&initialize("desk")).send().await;
    assert_eq!(opened.status, 200, "{}", opened.text());
    assert_eq!(message(&opened)["result"]["serverInfo"]["name"], "quarterdeck");
    assert_eq!(opened.cookie(), None, "MCP clients keep none");
    let session = opened.header("mcp-session-id").unwrap();
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(world.mcp(&ready).with("mcp-session-id", session).send().await.status, 202);
    let mut open = world.mcp(&list()).with("mcp-session-id", session).open().await;
    open.until("inputSchema").await;
    let keyed =
        world.mcp(&list()).with("mcp-session-id", session).with("authorization", "Bearer another").send();
    assert_eq!(keyed.await.status, 404, "another client has no such session");
}

#[tokio::test]
async fn a_client_without_a_handshake_is_answered_at_once() {
    let world = World::new().await;
    let answer = world.mcp(&stateless("tools/list", json!({}))).send().await;
    let list = message(&answer);
    assert_eq!(list["result"]["tools"][0]["name"], "probe", "{list}");
    assert_eq!(list["result"]["ttlMs"], 60_000);
}

#[tokio::test]
async fn where_a_credential_is_required_a_client_is_told_where_to_get_one() {
    let world = World::with_identity(closed(), with_issuer()).await;
    let refused = world.mcp(&initialize("desk")).send().await;
    assert_eq!(refused.status, 401);
    let metadata = format!("http://{}/.well-known/oauth-protected-resource/mcp", world.address);
    assert_eq!(
        refused.header("www-authenticate"),
        Some(&*format!("Bearer resource_metadata=\"{metadata}\""))
    );
    let wrong = world.mcp(&initialize("desk")).with("authorization", "Bearer wrong").send().await;
    assert_eq!(wrong.status, 401);
    assert!(wrong.header("www-authenticate").unwrap().ends_with("error=\"invalid_token\""));
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let found = world.get(path).send().await.json();
        assert_eq!(found["resource"], format!("http://{}/mcp", world.address));
        assert_eq!(found["authorization_servers"], json!(["https://issuer.example"]));
    }
    let keyed =
        world.mcp(&initialize("desk")).with("authorization", "Bearer sesame-sesame-sesame").send().await;
    assert_eq!(keyed.status, 200, "{}", keyed.text());
}

#[tokio::test]
async fn without_an_issuer_there_is_nothing_to_point_to() {
    let identity = Identity::new(COOKIE_SECRET, None, vec![ApiKey::new("ci", "sesame-sesame-sesame")]);
    let world = World::with_identity(closed(), identity).await;
    let refused = world.mcp(&initialize("desk")).send().await;
    assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer")));
    assert_eq!(world.get("/.well-known/oauth-protected-resource/mcp").send().await.status, 404);
}

#[tokio::test]
async fn beyond_this_machine_mcp_requires_a_credential_once_one_is_configured() {
    let open =
        Settings { is_loopback: false, admin_token: Some("the-admin-token".into()), ..Settings::default() };
    let world = World::with_identity(open.clone(), with_issuer()).await;
    assert_eq!(world.mcp(&initialize("desk")).send().await.status, 401);
    let world = World::with(open).await;
    assert_eq!(world.mcp(&initialize("desk")).send().await.status, 200);
}

#[tokio::test]
async fn foreign_pages_and_foreign_names_are_refused() {
    let world = World::new().await;
    let page = world.mcp(&initialize("page")).with("origin", "https://evil.example").send().await;
    assert_eq!(page.status, 403);
    let rebound = world.mcp(&initialize("page")).with("host", "evil.example").send().await;
    assert_eq!(rebound.status, 403);
    let own = world.mcp(&initialize("page")).with("origin", "http://localhost:3000").send().await;
    assert_eq!(own.status, 200, "a page on this machine is one of its programs");
}

#[tokio::test]
async fn bodies_are_bounded_in_size_and_depth() {
    let world = World::new().await;
    let headers = |ask: Ask| {
        ask.with("accept", "application/json, text/event-stream").with("content-type", "application/json")
    };
    let large = headers(world.ask("POST", "/mcp")).body(vec![b' '; (1 << 20) + 1]).send().await;
    assert_eq!(large.status, 413);
    let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
    let deep = headers(world.ask("POST", "/mcp")).body(deep).send().await;
    assert_eq!(deep.status, 400, "{}", deep.text());
}

#[tokio::test]
async fn a_blocked_client_is_told_so_in_the_answer_of_its_call() {
    let identity = Identity::new(COOKIE_SECRET, None, vec![ApiKey::new("ci", "sesame-sesame-sesame")]);
    let world = World::with_identity(Settings::default(), identity).await;
    world.block("key:ci").await;
    let call = stateless("tools/call", json!({ "name": "probe", "arguments": { "do": "it" } }));
    let ask = world.mcp(&call).with("mcp-name", "probe").with("authorization", "Bearer sesame-sesame-sesame");
    let answer = message(&ask.send().await);
    assert_eq!(answer["result"]["isError"], json!(true), "{answer}");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text, "You are blocked for the time being: Please calm down.");
}

#[tokio::test]
async fn a_client_that_is_blocked_while_it_is_connected_is_refused_with_every_call() {
    let identity = Identity::new(COOKIE_SECRET, None, vec![ApiKey::new("ci", "sesame-sesame-sesame")]);
    let world = World::with_identity(Settings::default(), identity).await;
    let by_key = |ask: Ask| ask.with("authorization", "Bearer sesame-sesame-sesame");
    let session = by_key(world.mcp(&initialize("desk"))).send().await;
    let session = session.header("mcp-session-id").unwrap().to_owned();
    let params = json!({ "name": "probe", "arguments": { "do": "it" } });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
    let ask = || by_key(world.mcp(&call)).with("mcp-session-id", &session);
    assert!(!message(&ask().send().await).to_string().contains("You are blocked"));
    world.block("key:ci").await;
    world.advance_clock(std::time::Duration::from_secs(6));
    for _ in 0..3 {
        let answer = message(&ask().send().await);
        assert!(answer["result"]["content"].to_string().contains("You are blocked"), "{answer}");
    }
}

#[tokio::test]
async fn a_stream_that_waits_for_news_does_not_hold_up_a_shutdown() {
    let mut world = World::new().await;
    let session = world.mcp(&initialize("desk")).send().await.header("mcp-session-id").unwrap().to_owned();
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    world.mcp(&ready).with("mcp-session-id", &session).send().await;
    let waiting =
        world.ask("GET", "/mcp").with("accept", "text/event-stream").with("mcp-session-id", &session);
    let mut waiting = waiting.open().await;
    assert_eq!(waiting.head().status, 200);
    world.stop();
    // It would be cut off after ten seconds; here it ends by itself, with the end of its last chunk.
    let began = std::time::Instant::now();
    waiting.rest().await;
    world.wait_until_stopped().await;
    assert!(began.elapsed() < std::time::Duration::from_secs(9), "{:?}", began.elapsed());
}
