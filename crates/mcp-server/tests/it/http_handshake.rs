//! Confirmation through a client that has shaken hands over HTTP: the question comes on the stream of its call.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use quarterdeck_mcp_server::{McpCaller, McpHttp};
use quarterdeck_runtime::Client;
use serde_json::{Value, json};

use crate::world::World;

type Answer = Response<BoxBody<Bytes, std::convert::Infallible>>;

struct Connection {
    http: McpHttp,
    client: String,
    session: String,
}

async fn post(http: &McpHttp, client: &str, session: Option<&str>, message: &Value) -> Answer {
    let mut request = Request::post("http://127.0.0.1:8080/mcp")
        .header("host", "127.0.0.1:8080")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-11-25");
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    let mut request = request.body(Full::new(Bytes::from(message.to_string()))).unwrap();
    request.extensions_mut().insert(McpCaller::Known(Client::anonymous(client)));
    http.handle(request).await
}

impl Connection {
    async fn open(world: &World, client: &str) -> Self {
        let http = McpHttp::new(world.server.clone());
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "test", "version": "1" },
        } });
        let answer = post(&http, client, None, &hello).await;
        let session = answer.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        next_message(&mut answer.into_body(), |message| message["id"] == 0).await;
        let connection = Self { http, client: client.to_owned(), session };
        connection.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        connection
    }

    async fn send(&self, message: &Value) -> Answer {
        post(&self.http, &self.client, Some(&self.session), message).await
    }
}

/// The next message on a stream that is wanted.
async fn next_message(
    body: &mut BoxBody<Bytes, std::convert::Infallible>,
    is_wanted: impl Fn(&Value) -> bool,
) -> Value {
    let mut text = String::new();
    loop {
        for line in text.lines().map(|line| line.strip_prefix("data:").unwrap_or(line)) {
            if let Ok(message) = serde_json::from_str::<Value>(line)
                && is_wanted(&message)
            {
                return message;
            }
        }
        let frame = body.frame().await.unwrap_or_else(|| panic!("the stream has ended: {text}")).unwrap();
        text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
    }
}

fn is_question(message: &Value) -> bool {
    message["method"] == "elicitation/create"
}

#[tokio::test]
async fn the_question_comes_on_the_stream_of_its_call_and_the_answer_on_a_request_of_its_own() {
    let world = World::new();
    let ann = Connection::open(&world, "ann").await;
    for (is_approved, times) in [(false, 0), (true, 1)] {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "pay", "arguments": { "what": "rent" },
        } });
        let mut stream = ann.send(&call).await.into_body();
        let question = next_message(&mut stream, is_question).await;
        let content = json!({ "action": "accept", "content": { "confirm": is_approved } });
        let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "result": content });
        // Another client cannot answer it, even if it has found out which session it is.
        let forged = json!({ "jsonrpc": "2.0", "id": question["id"], "result":
            { "action": "accept", "content": { "confirm": true } } });
        let refused = post(&ann.http, "mallory", Some(&ann.session), &forged).await;
        assert_eq!(refused.status(), 404);
        assert!(ann.send(&reply).await.status().is_success());
        let answer =
            next_message(&mut stream, |message| message["id"] == 1 && message.get("result").is_some()).await;
        assert_eq!(answer["result"]["isError"] == true, !is_approved, "{answer}");
        assert_eq!(world.effects.times("rent"), times);
    }
}
