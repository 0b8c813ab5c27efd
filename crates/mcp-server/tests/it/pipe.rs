//! A client that has shaken hands, at the other end of a pipe. It sends and reads plain messages.

use std::collections::VecDeque;

use quarterdeck_mcp_server::McpCaller;
use quarterdeck_runtime::Client;
use rmcp::ServiceExt;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

use crate::world::World;

pub(crate) struct Pipe {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    /// What was read while something else was waited for.
    passed_over: VecDeque<Value>,
    next_id: u64,
}

impl Pipe {
    /// Shakes hands with these capabilities.
    pub(crate) async fn open(world: &World, client: &str, capabilities: Value) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let handler = world.server.handler_for(McpCaller::Known(Client::anonymous(client)));
        tokio::spawn(async move {
            if let Ok(running) = handler.serve(tokio::io::split(theirs)).await {
                let _ = running.waiting().await;
            }
        });
        let (reader, writer) = tokio::io::split(ours);
        let lines = BufReader::new(reader).lines();
        let mut pipe = Self { lines, writer, passed_over: VecDeque::new(), next_id: 0 };
        let id = pipe
            .request(
                "initialize",
                json!({
                    "protocolVersion": "2025-11-25", "capabilities": capabilities,
                    "clientInfo": { "name": "test", "version": "1" },
                }),
            )
            .await;
        assert_eq!(pipe.answer(id).await["result"]["serverInfo"]["name"], "quarterdeck");
        pipe.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        pipe
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// Sends a request and gives its id.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    pub(crate) async fn call(&mut self, tool: &str, args: Value) -> u64 {
        self.request("tools/call", json!({ "name": tool, "arguments": args })).await
    }

    /// The response to a request.
    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        self.find(|message| message["id"] == id && message.get("method").is_none()).await
    }

    /// The next request or notification with this method.
    pub(crate) async fn message(&mut self, method: &str) -> Value {
        self.find(|message| message["method"] == method).await
    }

    /// Answers a request of the server.
    pub(crate) async fn reply(&mut self, request: &Value, result: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })).await;
    }

    async fn find(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(place) = self.passed_over.iter().position(&is_wanted) {
            return self.passed_over.remove(place).unwrap();
        }
        loop {
            let line = self.lines.next_line().await.unwrap().expect("the server has closed the pipe");
            let message: Value = serde_json::from_str(&line).unwrap();
            if is_wanted(&message) {
                return message;
            }
            self.passed_over.push_back(message);
        }
    }
}

/// The text of a result of `tools/call`, and whether it is an error.
pub(crate) fn text(answer: &Value) -> (String, bool) {
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    (text.to_owned(), result["isError"] == true)
}
