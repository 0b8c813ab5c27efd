//! A raw HTTP client for tests.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

pub(crate) struct Ask {
    to: SocketAddr,
    head: String,
    body: Vec<u8>,
    has_host: bool,
}

impl Ask {
    pub(crate) fn new(to: SocketAddr, method: &str, target: &str) -> Self {
        let head = format!("{method} {target} HTTP/1.1\r\nconnection: close\r\n");
        Self { to, head, body: Vec::new(), has_host: false }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.has_host |= name == "host";
        self.head.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.with("content-type", "application/json").body(body.to_string())
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        let length = self.body.len().to_string();
        self.with("content-length", &length)
    }

    pub(crate) fn bytes(mut self) -> Vec<u8> {
        if !self.has_host {
            self.head = format!("{}host: {}\r\n", self.head, self.to);
        }
        [self.head.as_bytes(), b"\r\n", &self.body].concat()
    }

    pub(crate) async fn send(self) -> Answer {
        let mut open = self.open().await;
        open.rest().await
    }

    /// Sends it and reads the head of the answer.
    pub(crate) async fn open(self) -> Open {
        let to = self.to;
        raw(to, &self.bytes()).await
    }
}

/// Sends some bytes and reads the head of the answer.
pub(crate) async fn raw(to: SocketAddr, bytes: &[u8]) -> Open {
    let mut stream = TcpStream::connect(to).await.unwrap();
    // A server that refuses may close before everything is sent.
    let _ = stream.write_all(bytes).await;
    Open::read(stream).await
}

/// A response in progress.
pub(crate) struct Open {
    answer: Answer,
    stream: BufReader<TcpStream>,
}

impl Open {
    /// Reads the head of an answer.
    pub(crate) async fn read(stream: TcpStream) -> Self {
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let mut headers = Vec::new();
        loop {
            line.clear();
            stream.read_line(&mut line).await.unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        Self { answer: Answer { status, headers, body: Vec::new() }, stream }
    }

    /// Reads until the text has arrived.
    pub(crate) async fn until(&mut self, text: &str) {
        while !String::from_utf8_lossy(&self.answer.body).contains(text) {
            let mut piece = [0; 4096];
            let read = self.stream.read(&mut piece).await.unwrap();
            assert!(read > 0, "the answer ended before {text:?}: {:?}", self.answer.text());
            self.answer.body.extend_from_slice(&piece[..read]);
        }
    }

    /// The head alone.
    pub(crate) fn head(&self) -> Answer {
        self.answer.clone()
    }

    /// Reads the rest as it was sent, whether it is complete or not.
    pub(crate) async fn raw_rest(&mut self) -> String {
        let mut body = self.answer.body.clone();
        let _ = self.stream.read_to_end(&mut body).await;
        String::from_utf8(body).unwrap()
    }

    /// Reads the rest.
    pub(crate) async fn rest(&mut self) -> Answer {
        let mut answer = self.answer.clone();
        let _ = self.stream.read_to_end(&mut answer.body).await;
        if answer.header("transfer-encoding") == Some("chunked") {
            answer.body = unchunked(&answer.body);
        }
        answer
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    pub(crate) fn headers<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(known, _)| known == name).map(|(_, value)| &**value)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.body
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("no JSON: {} {:?}", self.status, self.text()))
    }

    /// The data of the events that are JSON.
    pub(crate) fn events(&self) -> Vec<Value> {
        let text = self.text();
        let data = text.split("\n\n").filter_map(|event| event.strip_prefix("data: "));
        data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
    }

    /// The first event of a type.
    pub(crate) fn event(&self, kind: &str) -> Value {
        let found = self.events().into_iter().find(|event| event["type"] == kind);
        found.unwrap_or_else(|| panic!("no {kind} in {}", self.text()))
    }

    /// The cookie that the answer sets, as it is sent back.
    pub(crate) fn cookie(&self) -> Option<String> {
        self.header("set-cookie").map(|cookie| cookie.split(';').next().unwrap().to_owned())
    }

    /// Status, error type and message, in either error format.
    pub(crate) fn refusal(&self) -> (u16, String, String) {
        let error = &self.json()["error"];
        let text = |name: &str| error[name].as_str().unwrap_or_else(|| panic!("{error}")).to_owned();
        (self.status, text("type"), text("message"))
    }
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = body.windows(2).position(|pair| pair == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        let from = end + 2;
        whole.extend_from_slice(&body[from..from + size]);
        body = &body[from + size + 2..];
    }
    whole
}
