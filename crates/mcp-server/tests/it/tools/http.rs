//! The transport: whose session is whose.

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use quarterdeck_mcp_server::{McpCaller, McpHttp, McpSettings};
use quarterdeck_runtime::Client;
use serde_json::{Value, json};

use super::world::World;

struct Answer {
    status: StatusCode,
    session: Option<String>,
    body: String,
}

impl Answer {
    /// The last message, whether it came alone or in a stream.
    fn message(&self) -> Value {
        let line = self
            .body
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix("data: ").filter(|data| !data.is_empty()));
        serde_json::from_str(line.unwrap_or(&self.body)).unwrap()
    }
}

fn known(id: &str) -> McpCaller {
    McpCaller::Known(Client::anonymous(id))
}

async fn send(http: &McpHttp, caller: McpCaller, method: &str, session: Option<&str>, body: Value) -> Answer {
    let mut request = Request::builder()
        .method(method)
        .uri("/mcp")
        .header("host", "localhost")
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .extension(caller);
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    if let Some(version) = body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str() {
        request = request.header("mcp-protocol-version", version);
        request = request.header("mcp-method", body["method"].as_str().unwrap());
        if let Some(name) = body["params"]["name"].as_str() {
            request = request.header("mcp-name", name);
        }
    }
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let response = http.handle(request.body(Full::new(Bytes::from(body))).unwrap()).await;
    let status = response.status();
    let session = response.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
    let body = if method == "GET" && status == StatusCode::OK {
        String::new()
    } else {
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    };
    Answer { status, session, body }
}

fn initialize() -> Value {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
        },
    })
}

fn initialized() -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })
}

fn call(tool: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": tool, "arguments": { "what": "x" } } })
}

fn stateless(mut message: Value) -> Value {
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    message
}

#[tokio::test]
async fn another_client_cannot_use_a_session_however_it_came_by_the_id() {
    let world = World::new();
    let http = McpHttp::new(world.server.clone());
    let session = send(&http, known("ann"), "POST", None, initialize()).await.session.unwrap();
    let ready = send(&http, known("ann"), "POST", Some(&session), initialized()).await;
    assert_eq!(ready.status, StatusCode::ACCEPTED);
    for caller in [known("eve"), McpCaller::Unknown(Client::anonymous("ann"))] {
        for (method, body) in [("POST", call("book")), ("GET", Value::Null), ("DELETE", Value::Null)] {
            let answer = send(&http, caller.clone(), method, Some(&session), body).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{method}");
        }
    }
    assert_eq!(world.effects.times("x"), 0);
    let answer = send(&http, known("ann"), "POST", Some(&session), call("book")).await;
    assert_eq!(answer.message()["result"]["structuredContent"], json!({ "booked": "x" }));
    let ended = send(&http, known("ann"), "DELETE", Some(&session), Value::Null).await;
    assert!(ended.status.is_success(), "{}", ended.status);
    let gone = send(&http, known("ann"), "POST", Some(&session), call("book")).await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn connections_that_are_not_used_again_are_bounded() {
    let world =
        World::with(McpSettings { max_sessions_per_client: 2, max_sessions: 4, ..McpSettings::default() });
    let http = McpHttp::new(world.server.clone());
    let mut sessions = Vec::new();
    for caller in ["ann", "ann", "ann", "bob", "bob"] {
        let session = send(&http, known(caller), "POST", None, initialize()).await.session.unwrap();
        send(&http, known(caller), "POST", Some(&session), initialized()).await;
        sessions.push((caller, session));
    }
    let mut statuses = Vec::new();
    for (caller, session) in &sessions {
        statuses.push(send(&http, known(caller), "POST", Some(session), call("echo")).await.status.as_u16());
    }
    assert_eq!(statuses, [404, 200, 200, 200, 200], "the first of ann's went for her third");
    // There is no room for another client, and no client loses anything for it.
    let refused = send(&http, known("eve"), "POST", None, initialize()).await.message();
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("as many sessions as it can hold"),
        "{refused}"
    );
    let (_, session) = &sessions[1];
    assert_eq!(send(&http, known("ann"), "POST", Some(session), call("echo")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_request_that_is_dropped_stops_its_call() {
    let world = World::new();
    let http = McpHttp::new(world.server.clone());
    let request = send(&http, known("ann"), "POST", None, stateless(call("wait")));
    tokio::select! {
        answer = request => panic!("{}", answer.body),
        () = world.effects.gate.wait_for_one() => {}
    }
    while world.effects.times("cancelled") == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn both_generations_are_served_at_one_place() {
    let world = World::new();
    let http = McpHttp::new(world.server.clone());
    let answer = send(&http, known("ann"), "POST", None, stateless(call("book"))).await;
    let message = answer.message();
    assert_eq!(message["result"]["structuredContent"], json!({ "booked": "x" }), "{message}");
    assert_eq!(message["result"]["resultType"], "complete");
    assert!(answer.session.is_none());
    let discovered = send(
        &http,
        known("ann"),
        "POST",
        None,
        stateless(json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {} })),
    )
    .await
    .message();
    assert_eq!(discovered["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "quarterdeck");
}

#[tokio::test]
async fn programs_of_this_machine_are_apart_by_their_names() {
    let world = World::new();
    let http = McpHttp::new(world.server.clone());
    let local =
        || McpCaller::LocalProgram(std::sync::Arc::new(|name| Client::anonymous(format!("program-{name}"))));
    for name in ["a", "b", "a"] {
        let mut message = stateless(call("echo"));
        message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]["name"] = json!(name);
        let answer = send(&http, local(), "POST", None, message).await.message();
        assert_eq!(answer["result"]["isError"], json!(false), "{answer}");
    }
    assert_eq!(world.audit.count("session_start"), 2);
}
