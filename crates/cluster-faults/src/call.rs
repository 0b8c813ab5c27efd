//! A client that calls: a page with a socket to one node, which goes to another one with its resume token when it is lost.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quarterdeck_websocket::{Limits, Message, WebSocket, upgrade};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::client::{ASK_TIMEOUT, Dice, PAUSE, Surroundings, new_cookie};
use crate::journal::{Told, keys_in};

const ASKS_PER_CALL: u32 = 12;
/// As the page has it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// A page pings. A node that says nothing for this long is gone.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(5);
const PING_INTERVAL: Duration = Duration::from_secs(1);
/// How long a user waits for an answer before they say it again.
const REPEAT_AFTER: Duration = Duration::from_secs(10);
/// How long they wait at least once they are connected again.
const ANSWER_DELAY: Duration = Duration::from_secs(3);

pub(crate) struct Call {
    of: Arc<Surroundings>,
    dice: Dice,
    name: String,
    cookie: String,
    asked: u32,
    /// Where it is connected, and what it resumes with.
    line: Option<Line>,
    resume: Option<Value>,
}

struct Line {
    node: SocketAddr,
    socket: WebSocket<TcpStream>,
    heard: Instant,
    pinged: Instant,
    /// The ids of the calls that it was told of, with what they were asked for.
    calls: Vec<(String, String)>,
    /// What the assistant has said in this turn, which comes in pieces.
    words: String,
}

impl Call {
    pub(crate) async fn new(of: Arc<Surroundings>, index: usize) -> Self {
        let mut dice = Dice::new(index as u64 + 1_000);
        let cookie = new_cookie(&of, &mut dice).await;
        Self { of, dice, name: format!("v{index}"), cookie, asked: 0, line: None, resume: None }
    }

    pub(crate) async fn run(mut self) {
        while !self.of.is_over() {
            self.asked += 1;
            if self.asked.is_multiple_of(ASKS_PER_CALL) {
                self.hang_up().await;
            }
            let tool = if self.dice.below(4) == 0 { "pay" } else { "book" };
            let key = format!("{}-{}", self.name, self.asked);
            self.connect(&mut Instant::now()).await;
            self.of.journal.ask(&key, &self.name);
            let begin = Instant::now();
            let asking = self.ask(tool, &key);
            if timeout(ASK_TIMEOUT, asking).await.is_ok() {
                self.of.journal.took("call", begin.elapsed());
            }
            self.listen_for_a_while().await;
        }
        self.hang_up().await;
    }

    /// Says what it wants until it is told what came of it.
    async fn ask(&mut self, tool: &str, key: &str) {
        let of = self.of.clone();
        of.journal.note(key, "said");
        self.say(&format!("{tool} {key}")).await;
        let mut said = Instant::now();
        while !self.of.journal.is_told(key) {
            let Some(message) = self.next().await else {
                let mut lost = Instant::now();
                of.journal.note(key, "the line is lost");
                self.connect(&mut lost).await;
                of.journal.note(key, &format!("connected to {:?}", self.line.as_ref().map(|line| line.node)));
                of.journal.took("call goes on", lost.elapsed());
                // The answer may be on its way to the new line.
                said = said.max(Instant::now() - (REPEAT_AFTER - ANSWER_DELAY));
                continue;
            };
            if !matches!(message["type"].as_str(), Some("pong" | "audio")) {
                of.journal.note(key, &message.to_string());
            }
            self.take(key, &message).await;
            // Who sees that something is done about it waits.
            if matches!(message["type"].as_str(), Some("tool_call" | "progress" | "confirmation_request")) {
                said = Instant::now();
            }
            if said.elapsed() > REPEAT_AFTER && !self.of.journal.is_told(key) {
                of.journal.note(key, "said again");
                self.say(&format!("{tool} {key}")).await;
                said = Instant::now();
            }
        }
    }

    /// What a message says about the thing that was asked for.
    async fn take(&mut self, key: &str, message: &Value) {
        let Some(line) = &mut self.line else { return };
        let text = |name: &str| message[name].as_str().unwrap_or_default().to_owned();
        match message["type"].as_str().unwrap_or_default() {
            "tool_call" => {
                line.calls.push((text("callId"), message["args"]["what"].as_str().unwrap_or_default().into()))
            }
            "tool_result" => {
                let known =
                    line.calls.iter().find(|(id, _)| *id == text("callId")).map(|(_, asked)| asked.as_str());
                if known == Some(key) {
                    let told = Told::from_envelope(message);
                    told.into_iter().for_each(|told| self.of.journal.tell(key, told));
                }
            }
            "confirmation_request" if message["args"]["what"] == key => {
                let yes = json!({ "type": "confirm", "token": message["token"], "approve": true });
                self.send(&yes).await;
            }
            "transcript" if message["role"] == "assistant" => {
                line.words.push_str(&text("text"));
                let words = line.words.clone();
                self.take_words(key, &words);
            }
            "turn_complete" | "interrupted" => line.words.clear(),
            _ => {}
        }
    }

    /// What the model says of it, where the page was told nothing else.
    fn take_words(&mut self, key: &str, words: &str) {
        // The last piece of a number may be still to come.
        let is_whole = words.ends_with(['.', '!', '?']);
        let news = words.rsplit_once("receipt ").or(words.rsplit_once("Earlier: ")).filter(|_| is_whole);
        let Some((_, news)) = news else { return };
        let receipt: String = news.chars().take_while(char::is_ascii_digit).collect();
        let journal = &self.of.journal;
        match receipt.parse() {
            Ok(receipt) if keys_in(news).next() == Some(key) => journal.tell(key, Told::Done(Some(receipt))),
            Ok(_) => {}
            Err(_) if news.contains("not known") => journal.tell(key, Told::Unknown),
            Err(_) => {}
        }
    }

    /// Reads on between two wishes, so that the line is kept.
    async fn listen_for_a_while(&mut self) {
        let (of, mut dice) = (self.of.clone(), Dice::new(u64::from(self.asked) + 77));
        let mut listening = std::pin::pin!(dice.think(&of));
        loop {
            tokio::select! {
                () = &mut listening => return,
                message = self.next() => {
                    if message.is_none() {
                        let mut lost = Instant::now();
                        self.connect(&mut lost).await;
                        self.of.journal.took("call goes on", lost.elapsed());
                    }
                }
            }
        }
    }

    async fn say(&mut self, text: &str) {
        self.send(&json!({ "type": "text", "text": text })).await;
    }

    async fn send(&mut self, message: &Value) {
        let Some(line) = &mut self.line else { return };
        line.socket.send_text(&message.to_string());
        if timeout(SILENCE_TIMEOUT, line.socket.flush()).await.is_err() {
            self.line = None;
        }
    }

    /// The next message; nothing when the line is lost.
    async fn next(&mut self) -> Option<Value> {
        loop {
            let line = self.line.as_mut()?;
            while let Some(message) = line.socket.next() {
                let read = match message {
                    Ok(Message::Text(text)) => Some(text.to_owned()),
                    Ok(Message::Close(..)) | Err(_) => {
                        self.line = None;
                        return None;
                    }
                    Ok(_) => None,
                };
                if let Some(text) = read {
                    self.of.journal.look_for_strays(&self.name, &text);
                    let message: Value = serde_json::from_str(&text).unwrap();
                    if message["type"] == "session_end" {
                        self.resume = None;
                    }
                    return Some(message);
                }
            }
            if line.heard.elapsed() > SILENCE_TIMEOUT {
                self.line = None;
                return None;
            }
            if line.pinged.elapsed() > PING_INTERVAL {
                line.pinged = Instant::now();
                line.socket.send_text(r#"{"type":"ping"}"#);
                drop(timeout(PING_INTERVAL, line.socket.flush()).await);
            }
            match timeout(PING_INTERVAL / 2, line.socket.fill()).await {
                Ok(Ok(_)) => line.heard = Instant::now(),
                Ok(Err(_)) => {
                    self.line = None;
                    return None;
                }
                Err(_) => {}
            }
        }
    }

    /// Connects where it was not before, with the resume token if there is one, until a node takes the call.
    async fn connect(&mut self, lost: &mut Instant) {
        let mut next = self.dice.below(self.of.nodes.len());
        let begin = *lost;
        while self.line.is_none() && begin.elapsed() < ASK_TIMEOUT {
            let node = self.of.nodes[next % self.of.nodes.len()];
            next += 1;
            match timeout(CONNECT_TIMEOUT, self.dial(node)).await {
                Ok(Some(line)) => self.line = Some(line),
                // A node that refuses is left at once; a page does the same.
                _ if begin.elapsed() < Duration::from_secs(2) => tokio::time::sleep(PAUSE / 4).await,
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    async fn dial(&mut self, node: SocketAddr) -> Option<Line> {
        let stream = TcpStream::connect(node).await.ok()?;
        let limits = Limits { max_message_bytes: 1 << 20 };
        let headers = [("cookie", self.cookie.as_str())];
        let mut socket = upgrade(stream, &node.to_string(), "/voice", &headers, limits).await.ok()?;
        let mut start = self.resume.clone().unwrap_or_else(|| json!({}));
        start["type"] = "start".into();
        socket.send_text(&start.to_string());
        socket.flush().await.ok()?;
        loop {
            while let Some(message) = socket.next() {
                let message: Value = match message {
                    Ok(Message::Text(text)) => serde_json::from_str(text).ok()?,
                    Ok(Message::Close(..)) | Err(_) => return None,
                    Ok(_) => continue,
                };
                if message["type"] == "error" {
                    let error = message["error"].clone();
                    self.of.journal.refused(0, error.to_string());
                    if error["type"] == "NOT_FOUND"
                        || error["message"].as_str().is_some_and(|text| text.contains("ended"))
                    {
                        self.resume = None;
                    }
                    return None;
                }
                if message["type"] == "ready" {
                    self.resume = Some(
                        json!({ "sessionId": message["sessionId"], "resumeToken": message["resumeToken"] }),
                    );
                    let now = Instant::now();
                    return Some(Line {
                        node,
                        socket,
                        heard: now,
                        pinged: now,
                        calls: Vec::new(),
                        words: String::new(),
                    });
                }
            }
            socket.fill().await.ok()?;
        }
    }

    async fn hang_up(&mut self) {
        self.send(&json!({ "type": "stop" })).await;
        (self.line, self.resume) = (None, None);
    }
}
