//! A scripted HTTP server: a function from a request to an answer, and what was asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn message(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    pub(crate) fn rpc_method(&self) -> String {
        self.message()["method"].as_str().unwrap_or_default().to_owned()
    }
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn json(value: &Value) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self { status: 200, headers, body: value.to_string().into_bytes() }
    }

    pub(crate) fn events(body: &str) -> Self {
        let headers = vec![("content-type", "text/event-stream".to_owned())];
        Self { status: 200, headers, body: body.as_bytes().to_vec() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

type Script = dyn Fn(&Request) -> Answer + Send + Sync;

/// The server, on a port of its own.
pub(crate) struct HttpServer {
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
    serving: Option<tokio::task::JoinHandle<()>>,
}

impl HttpServer {
    pub(crate) async fn start(script: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (script, seen): (Arc<Script>, _) = (Arc::new(script), requests.clone());
        let serving = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, script.clone(), seen.clone()));
            }
        });
        Self { port, requests, serving: Some(serving) }
    }

    /// Ends it; nothing listens there when this returns.
    pub(crate) async fn stop(mut self) {
        if let Some(serving) = self.serving.take() {
            serving.abort();
            let _ = serving.await;
        }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, rpc_method: &str) -> usize {
        self.requests().iter().filter(|request| request.rpc_method() == rpc_method).count()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        if let Some(serving) = &self.serving {
            serving.abort();
        }
    }
}

async fn serve(stream: TcpStream, script: Arc<Script>, seen: Arc<Mutex<Vec<Request>>>) {
    let mut stream = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
            return;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let mut first = lines[0].split(' ').map(str::to_owned);
    let (method, path) = (first.next().unwrap(), first.next().unwrap());
    let headers: BTreeMap<_, _> = lines[1..]
        .iter()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    let request = Request { method, path, headers, body: String::from_utf8(body).unwrap() };
    let answer = script(&request);
    seen.lock().unwrap().push(request);
    let mut head = format!(
        "HTTP/1.1 {} X\r\nconnection: close\r\ncontent-length: {}\r\n",
        answer.status,
        answer.body.len()
    );
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    // A client that has seen enough closes.
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(&answer.body).await;
}

/// What an ordinary server answers to everything but calls.
pub(crate) fn ordinary(request: &Request) -> Answer {
    let message = request.message();
    let answer =
        |result: Value| Answer::json(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
    match (request.method.as_str(), request.rpc_method().as_str()) {
        ("POST", "initialize") => answer(json!({
            "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "serverInfo": { "name": "scripted", "version": "1" },
        }))
        .with("mcp-session-id", "session-1"),
        ("POST", "tools/list") => {
            let schema = json!({ "type": "object" });
            answer(
                json!({ "tools": [{ "name": "echo", "description": "Says it again.", "inputSchema": schema }] }),
            )
        }
        ("POST", "tools/call") => answer(json!({ "content": [{ "type": "text", "text": "answered" }] })),
        ("POST", _) => Answer::status(202),
        _ => Answer::status(405),
    }
}
