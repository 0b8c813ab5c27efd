//! A page that speaks with the server.

use quarterdeck_websocket::{Limits, Message, WebSocket, upgrade};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::server::{PATIENCE, Server};

/// A page in a call.
pub(crate) struct Page {
    socket: WebSocket<TcpStream>,
    cookie: String,
    /// How the call was answered.
    pub(crate) ready: Value,
    /// Everything that it has read, but for audio.
    pub(crate) read: Vec<Value>,
}

impl Page {
    /// Somebody new calls.
    pub(crate) async fn calls(server: &Server) -> Self {
        let cookie = server.newcomer();
        Self::opens(server, cookie, json!({})).await
    }

    /// The connection is lost without a word, and the page calls again, perhaps another server.
    pub(crate) async fn calls_again(self, server: &Server) -> Self {
        let (cookie, start) = self.hangs_up();
        Self::resumes(server, cookie, start).await
    }

    /// The connection is lost without a word. What is needed to come back.
    pub(crate) fn hangs_up(self) -> (String, Value) {
        let start = self.key();
        (self.cookie, start)
    }

    /// The same page in another window, which takes the call over.
    pub(crate) async fn is_copied(&self, server: &Server) -> Self {
        Self::resumes(server, self.cookie.clone(), self.key()).await
    }

    fn key(&self) -> Value {
        json!({ "sessionId": self.ready["sessionId"], "resumeToken": self.ready["resumeToken"] })
    }

    pub(crate) async fn resumes(server: &Server, cookie: String, start: Value) -> Self {
        let page = Self::opens(server, cookie, start.clone()).await;
        assert_eq!(page.ready["resumed"], true, "{}", page.ready);
        assert_eq!(page.ready["sessionId"], start["sessionId"]);
        page
    }

    async fn opens(server: &Server, cookie: String, mut start: Value) -> Self {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let host = server.address.to_string();
        let limits = Limits { max_message_bytes: 1 << 20 };
        let headers = [("cookie", cookie.as_str())];
        let socket = upgrade(stream, &host, "/voice", &headers, limits).await.unwrap();
        let mut page = Self { socket, cookie, ready: Value::Null, read: Vec::new() };
        start["type"] = "start".into();
        page.sends(&start).await;
        page.ready = page.until("ready").await;
        page
    }

    pub(crate) async fn sends(&mut self, json: &Value) {
        self.socket.send_text(&json.to_string());
        self.socket.flush().await.unwrap();
    }

    pub(crate) async fn writes(&mut self, text: &str) {
        self.sends(&json!({ "type": "text", "text": text })).await;
    }

    /// Writes something and reads on until it is answered and the turn is over.
    pub(crate) async fn asks(&mut self, text: &str, answer: &str) {
        self.writes(text).await;
        self.hears(answer).await;
        self.until("turn_complete").await;
    }

    /// Reads on until the model has said something.
    pub(crate) async fn hears(&mut self, answer: &str) {
        while !self.heard().contains(answer) {
            self.until("transcript").await;
        }
    }

    /// Reads on to a message of a type.
    pub(crate) async fn until(&mut self, kind: &str) -> Value {
        loop {
            match self.next().await {
                Some(json) if json["type"] == kind => return json,
                Some(_) => {}
                None => panic!("the call ended before {kind}: {:#?}", self.read),
            }
        }
    }

    /// Reads to the end.
    pub(crate) async fn until_the_end(&mut self) -> &[Value] {
        while self.next().await.is_some() {}
        &self.read
    }

    /// The next text; nothing at the end.
    async fn next(&mut self) -> Option<Value> {
        loop {
            while let Some(message) = self.socket.next() {
                match message.unwrap() {
                    Message::Text(text) => {
                        let json: Value = serde_json::from_str(text).unwrap();
                        self.read.push(json.clone());
                        return Some(json);
                    }
                    Message::Close(..) => return None,
                    Message::Binary(_) | Message::Ping(_) | Message::Pong => {}
                }
            }
            let filled = timeout(PATIENCE, self.socket.fill()).await;
            let Ok(filled) = filled else { panic!("nothing more came: {:#?}", self.read) };
            filled.ok()?;
        }
    }

    /// What the model has said, as far as it was read.
    pub(crate) fn heard(&self) -> String {
        let said = self.read.iter().filter(|it| it["type"] == "transcript" && it["role"] == "assistant");
        said.filter_map(|it| it["text"].as_str()).collect()
    }

    /// What the page was told of results: for each, whether it went well, or its error.
    pub(crate) fn results(&self) -> Vec<String> {
        let results = self.read.iter().filter(|it| it["type"] == "tool_result");
        let result = |it: &Value| it["error"]["type"].as_str().unwrap_or("ok").to_owned();
        results.map(result).collect()
    }
}
