//! An MCP server for the tests: streamable HTTP with plain JSON answers, whose tools a test can change.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

#[derive(Clone)]
pub(crate) struct ScriptedServer {
    pub(crate) port: u16,
    tools: Arc<Mutex<Value>>,
    /// The heads of all requests, and the names of the tools that were called.
    pub(crate) heads: Arc<Mutex<Vec<String>>>,
    pub(crate) calls: Arc<Mutex<Vec<Value>>>,
}

impl ScriptedServer {
    pub(crate) fn start(tools: Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server =
            Self { port, tools: Arc::new(Mutex::new(tools)), heads: Arc::default(), calls: Arc::default() };
        let shared = server.clone();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let Ok(socket) = socket else { return };
                let shared = shared.clone();
                std::thread::spawn(move || while shared.answer(&socket).is_some() {});
            }
        });
        server
    }

    /// What is listed from now on.
    pub(crate) fn publish(&self, tools: Value) {
        *self.tools.lock().unwrap() = tools;
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Answers one request; nothing when the connection is over.
    fn answer(&self, socket: &TcpStream) -> Option<()> {
        let mut reader = BufReader::new(socket);
        let mut head = String::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line == "\r\n" {
                break;
            }
            head.push_str(&line);
        }
        let length = head
            .lines()
            .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.trim().parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body).ok()?;
        let is_post = head.starts_with("POST");
        self.heads.lock().unwrap().push(head);
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let answer = if is_post { self.result(&message) } else { None };
        match answer {
            Some(result) => {
                let text = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
                send(socket, "200 OK", &text)
            }
            None if is_post => send(socket, "202 Accepted", ""),
            None => send(socket, "405 Method Not Allowed", ""),
        }
    }

    fn result(&self, message: &Value) -> Option<Value> {
        match message["method"].as_str()? {
            "initialize" => Some(json!({
                "protocolVersion": "2025-06-18",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "forge", "version": "1.2.3" },
            })),
            "tools/list" => Some(json!({ "tools": *self.tools.lock().unwrap() })),
            "tools/call" => {
                self.calls.lock().unwrap().push(message["params"].clone());
                let name = message["params"]["name"].clone();
                Some(
                    json!({ "content": [{ "type": "text", "text": format!("did {name}") }], "isError": false }),
                )
            }
            _ => None,
        }
    }
}

fn send(mut socket: &TcpStream, status: &str, body: &str) -> Option<()> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
    socket.write_all(format!("{head}{body}").as_bytes()).ok()
}
