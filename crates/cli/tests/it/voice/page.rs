//! A client of `/voice`.

use std::net::SocketAddr;
use std::time::Duration;

use quarterdeck_testkit::sound::speech;
use quarterdeck_websocket::{Class, Limits, Message, Opcode, WebSocket, upgrade};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use super::server::{Server, TIMEOUT};

enum Received {
    Text(Value),
    Close,
    Nothing,
}

pub(crate) struct Page {
    socket: WebSocket<TcpStream>,
    cookie: String,
    /// The message `ready`.
    pub(crate) ready: Value,
    /// All messages received, without audio.
    pub(crate) messages: Vec<Value>,
    /// Bytes of audio received.
    pub(crate) audio_bytes: usize,
    /// Audio that was received and that no loudspeaker has taken.
    pub(crate) audio: Vec<u8>,
}

impl Page {
    /// Starts a call as a new client.
    pub(crate) async fn connect(server: &Server) -> Self {
        let cookie = server.new_cookie();
        Self::open(server, cookie, json!({})).await
    }

    /// Drops the connection and resumes the call, perhaps on another server.
    pub(crate) async fn reconnect(self, server: &Server) -> Self {
        let (cookie, start) = self.disconnect();
        Self::resume(server, cookie, start).await
    }

    /// Drops the connection. Returns what is needed to resume.
    pub(crate) fn disconnect(self) -> (String, Value) {
        let start = self.resume_request();
        (self.cookie, start)
    }

    /// Resumes the call on a second connection while the first is open.
    pub(crate) async fn take_over(&self, server: &Server) -> Self {
        Self::resume(server, self.cookie.clone(), self.resume_request()).await
    }

    fn resume_request(&self) -> Value {
        json!({ "sessionId": self.ready["sessionId"], "resumeToken": self.ready["resumeToken"] })
    }

    pub(crate) async fn resume(server: &Server, cookie: String, start: Value) -> Self {
        let page = Self::open(server, cookie, start.clone()).await;
        assert_eq!(page.ready["resumed"], true, "{}", page.ready);
        assert_eq!(page.ready["sessionId"], start["sessionId"]);
        page
    }

    async fn open(server: &Server, cookie: String, start: Value) -> Self {
        Self::dial(server.address, cookie, start).await
    }

    /// Opens a call to a server that someone else has started.
    pub(crate) async fn dial(address: SocketAddr, cookie: String, mut start: Value) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let host = address.to_string();
        let limits = Limits { max_message_bytes: 1 << 20 };
        let headers = [("cookie", cookie.as_str())];
        let socket = upgrade(stream, &host, "/voice", &headers, limits).await.unwrap();
        let mut page = Self {
            socket,
            cookie,
            ready: Value::Null,
            messages: Vec::new(),
            audio_bytes: 0,
            audio: Vec::new(),
        };
        start["type"] = "start".into();
        page.send(&start).await;
        page.ready = page.wait_for("ready").await;
        page
    }

    pub(crate) async fn send(&mut self, json: &Value) {
        self.socket.send_text(&json.to_string());
        self.socket.flush().await.unwrap();
    }

    pub(crate) async fn send_text(&mut self, text: &str) {
        self.send(&json!({ "type": "text", "text": text })).await;
    }

    /// Says something for this long, and is silent then.
    pub(crate) async fn speak(&mut self, time: Duration) {
        self.send_sound(&[speech(time, 0.3, 16_000), vec![0; 2 * 16_000]].concat()).await;
    }

    /// Sends sound of 16 kHz as fast as a microphone does.
    pub(crate) async fn send_sound(&mut self, sound: &[i16]) {
        for frame in sound.chunks(320) {
            self.send_frame(frame).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn send_frame(&mut self, samples: &[i16]) {
        let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        let class = Class::Control;
        self.socket.send(Opcode::Binary, class, bytes.len(), |out| out.extend_from_slice(&bytes));
        self.socket.flush().await.unwrap();
    }

    /// The next final words of the user or the assistant.
    pub(crate) async fn wait_for_transcript(&mut self, role: &str) -> String {
        loop {
            let words = self.wait_for("transcript").await;
            if words["role"] == role && words["final"] == true {
                return words["text"].as_str().unwrap().to_owned();
            }
        }
    }

    /// Sends a text and reads until it is answered and the turn is complete.
    pub(crate) async fn exchange(&mut self, text: &str, answer: &str) {
        self.send_text(text).await;
        self.wait_for_answer(answer).await;
        self.wait_for("turn_complete").await;
    }

    /// Reads until the model's transcript contains `answer`.
    pub(crate) async fn wait_for_answer(&mut self, answer: &str) {
        while !self.answer_text().contains(answer) {
            self.wait_for("transcript").await;
        }
    }

    /// Reads up to a message of a type.
    pub(crate) async fn wait_for(&mut self, kind: &str) -> Value {
        loop {
            match self.next().await {
                Some(json) if json["type"] == kind => return json,
                Some(_) => {}
                None => panic!("the call ended before {kind}: {:#?}", self.messages),
            }
        }
    }

    pub(crate) async fn read_to_end(&mut self) -> &[Value] {
        while self.next().await.is_some() {}
        &self.messages
    }

    /// The next text; nothing at the end.
    async fn next(&mut self) -> Option<Value> {
        loop {
            match self.take_received() {
                Received::Text(json) => return Some(json),
                Received::Close => return None,
                Received::Nothing => {}
            }
            let filled = timeout(TIMEOUT, self.socket.fill()).await;
            let Ok(filled) = filled else { panic!("nothing more came: {:#?}", self.messages) };
            filled.ok()?;
        }
    }

    /// Reads whatever comes until then. Returns the messages.
    pub(crate) async fn receive_until(&mut self, until: Instant) -> Vec<Value> {
        let mut received = Vec::new();
        loop {
            match self.take_received() {
                Received::Text(json) => received.push(json),
                Received::Close => panic!("the call ended: {:#?}", self.messages),
                Received::Nothing => match timeout_at(until, self.socket.fill()).await {
                    Ok(filled) => filled.unwrap(),
                    Err(_) => return received,
                },
            }
        }
    }

    /// The next text of what was received; audio is kept.
    fn take_received(&mut self) -> Received {
        while let Some(message) = self.socket.next() {
            match message.unwrap() {
                Message::Text(text) => {
                    let json: Value = serde_json::from_str(text).unwrap();
                    self.messages.push(json.clone());
                    return Received::Text(json);
                }
                Message::Close(..) => return Received::Close,
                Message::Binary(audio) => {
                    self.audio_bytes += audio.len();
                    self.audio.extend_from_slice(audio);
                }
                Message::Ping(_) | Message::Pong => {}
            }
        }
        Received::Nothing
    }

    /// The model's transcript so far.
    pub(crate) fn answer_text(&self) -> String {
        let printed =
            self.messages.iter().filter(|it| it["type"] == "transcript" && it["role"] == "assistant");
        printed.filter_map(|it| it["text"].as_str()).collect()
    }

    /// `ok` or the error type of each tool result.
    pub(crate) fn results(&self) -> Vec<String> {
        let results = self.messages.iter().filter(|it| it["type"] == "tool_result");
        let result = |it: &Value| it["error"]["type"].as_str().unwrap_or("ok").to_owned();
        results.map(result).collect()
    }
}
