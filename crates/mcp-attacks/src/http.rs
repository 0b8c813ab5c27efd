//! The same over HTTP: one thread per connection, as little of the protocol as it takes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quarterdeck_mcp_attacks::published_tools;
use serde_json::{Value, json};

use crate::calls;
use crate::grandchild;
use crate::notes::Notes;

const JSON: &str = "content-type: application/json\r\n";

struct Site {
    behaviour: String,
    notes: Notes,
    /// The URL and the status of a redirect.
    elsewhere: (String, String),
    calls: AtomicU64,
}

struct Request {
    method: String,
    headers: Vec<(String, String)>,
    body: Value,
}

pub(crate) fn serve(behaviour: &str, notes: Notes, more: &[&str]) {
    let argument = |at: usize, otherwise: &str| more.get(at).copied().unwrap_or(otherwise).to_owned();
    let site = Arc::new(Site {
        behaviour: behaviour.to_owned(),
        notes,
        elsewhere: (argument(0, "http://127.0.0.1:1/"), argument(1, "307 Temporary Redirect")),
        calls: AtomicU64::new(0),
    });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    for stream in listener.incoming().map_while(Result::ok) {
        let site = site.clone();
        site.notes.write("connection", json!({}));
        std::thread::spawn(move || site.talk(&stream));
    }
}

impl Site {
    fn talk(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some(request) = read(&mut reader) {
            let told = json!({ "http": request.method, "headers": request.headers, "body": request.body });
            self.notes.write(request.body["method"].as_str().unwrap_or("http"), told);
            if self.respond(stream, &request).is_none() {
                return;
            }
        }
    }

    /// Answers one request; nothing when the connection is over.
    fn respond(&self, stream: &TcpStream, request: &Request) -> Option<()> {
        let (id, method) = (&request.body["id"], request.body["method"].as_str().unwrap_or_default());
        let is_call = method == "tools/call";
        let moved = self.behaviour == "redirects" || (self.behaviour == "redirects-calls" && is_call);
        if moved {
            let (url, status) = &self.elsewhere;
            return send(stream, status, &format!("location: {url}\r\n"), b"");
        }
        if self.behaviour == "demands-token" {
            let demand = format!("www-authenticate: Bearer resource_metadata=\"{}\"\r\n", self.elsewhere.0);
            return send(stream, "401 Unauthorized", &demand, b"");
        }
        match method {
            _ if request.method != "POST" => send(stream, "405 Method Not Allowed", "", b""),
            "initialize" => {
                let version = request.body["params"]["protocolVersion"].as_str().unwrap_or("2025-11-25");
                let result = json!({
                    "protocolVersion": version, "capabilities": { "tools": {} },
                    "serverInfo": { "name": "hostile", "version": "6.6.6" },
                });
                answer(stream, id, &result, "mcp-session-id: hostile\r\n")
            }
            "tools/list" => answer(stream, id, &json!({ "tools": published_tools() }), ""),
            "tools/call" => {
                self.calls.fetch_add(1, Ordering::SeqCst);
                self.call(stream, request)
            }
            "ping" => answer(stream, id, &json!({}), ""),
            _ if id.is_null() => send(stream, "202 Accepted", "", b""),
            _ => {
                let error = json!({ "code": -32601, "message": "Method not found" });
                send_json(stream, &json!({ "jsonrpc": "2.0", "id": id, "error": error }), "")
            }
        }
    }

    fn call(&self, stream: &TcpStream, request: &Request) -> Option<()> {
        let (id, params) = (&request.body["id"], &request.body["params"]);
        let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
        match self.behaviour.as_str() {
            "never-answers" => grandchild::linger(),
            "dies-in-write" if params["name"] == "book" => {
                let _ = stream.shutdown(std::net::Shutdown::Both);
                return None;
            }
            "endless-body" => return endless(stream, "application/json", b"                "),
            "endless-events" => return endless(stream, "text/event-stream", b": still here\n\n"),
            "deep-result" => {
                return send(stream, "200 OK", JSON, &calls::deep(id));
            }
            "huge-result" => return send(stream, "200 OK", JSON, &calls::huge(id)),
            "invalid-utf8" => {
                let body = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"\xff\xfe\"}]}}";
                return send(stream, "200 OK", JSON, body);
            }
            "wrong-type" => return send(stream, "200 OK", "content-type: text/html\r\n", b"<h1>Hello</h1>"),
            "forgets-session" => return send(stream, "404 Not Found", "", b""),
            _ => {}
        }
        let said =
            format!("{} {}", params["name"].as_str().unwrap(), params["arguments"]["what"].as_str().unwrap());
        answer(stream, id, &text(&said), "")
    }
}

fn answer(stream: &TcpStream, id: &Value, result: &Value, headers: &str) -> Option<()> {
    send_json(stream, &json!({ "jsonrpc": "2.0", "id": id, "result": result }), headers)
}

fn send_json(stream: &TcpStream, body: &Value, headers: &str) -> Option<()> {
    let headers = format!("{JSON}{headers}");
    send(stream, "200 OK", &headers, body.to_string().as_bytes())
}

fn send(mut stream: &TcpStream, status: &str, headers: &str, body: &[u8]) -> Option<()> {
    let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body).ok()
}

/// A body in pieces, without a last one.
fn endless(mut stream: &TcpStream, kind: &str, piece: &[u8]) -> Option<()> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    let piece = piece.repeat(1_000);
    let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"].concat();
    loop {
        stream.write_all(&chunk).ok()?;
    }
}

fn read(reader: &mut BufReader<&TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let method = line.split(' ').next().filter(|method| !method.is_empty())?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, headers, body: serde_json::from_slice(&body).unwrap_or_default() })
}
