//! Engines that hear, think and speak over HTTP, for the tests: what was asked of them, and answers that are always the same.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use quarterdeck_testkit::{ScriptedReply, ScriptedTurns, Shown};
use serde_json::{Value, json};

/// A second of speech at 24 kHz, for every sentence.
const SPOKEN_BYTES: usize = 48_000;

#[derive(Clone)]
pub(super) struct SpeechEngines {
    pub(super) address: SocketAddr,
    understood: &'static str,
    turns: Option<ScriptedTurns>,
    log: Arc<Mutex<Log>>,
    /// Grows with each pause and with each end of one: odd while nothing is answered.
    pauses: Arc<(Mutex<u64>, Condvar)>,
}

#[derive(Default)]
struct Log {
    /// The length of each utterance, in bytes of its file.
    utterances: Vec<usize>,
    sentences: Vec<String>,
    /// What the chat model was shown, request by request.
    requests: Vec<Vec<Value>>,
}

impl SpeechEngines {
    /// Engines that understand these words, whatever is said.
    pub(super) fn start(understood: &'static str) -> Self {
        Self::listen(understood, None)
    }

    /// Engines with a chat model that plays these turns.
    pub(super) fn playing(turns: &Value) -> Self {
        Self::listen("", Some(ScriptedTurns::new(turns)))
    }

    fn listen(understood: &'static str, turns: Option<ScriptedTurns>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let engines = Self { address, understood, turns, log: Arc::default(), pauses: Arc::default() };
        let running = engines.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map(Result::unwrap) {
                let running = running.clone();
                thread::spawn(move || running.answer(stream));
            }
        });
        engines
    }

    pub(super) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(super) fn utterances(&self) -> Vec<usize> {
        self.log.lock().unwrap().utterances.clone()
    }

    pub(super) fn sentences(&self) -> Vec<String> {
        self.log.lock().unwrap().sentences.clone()
    }

    /// What the chat model was shown, request by request.
    pub(super) fn requests(&self) -> Vec<Vec<Value>> {
        self.log.lock().unwrap().requests.clone()
    }

    /// From now on nothing is answered, until it goes on; what was asked meanwhile never is.
    pub(super) fn pause(&self) {
        *self.pauses.0.lock().unwrap() += 1;
    }

    pub(super) fn resume(&self) {
        *self.pauses.0.lock().unwrap() += 1;
        self.pauses.1.notify_all();
    }

    /// Whether what is asked now is answered.
    fn is_answering(&self) -> bool {
        let pauses = self.pauses.0.lock().unwrap();
        if pauses.is_multiple_of(2) {
            return true;
        }
        drop(self.pauses.1.wait_while(pauses, |pauses| !pauses.is_multiple_of(2)).unwrap());
        false
    }

    fn answer(&self, mut stream: TcpStream) {
        let (path, body) = read_request(&stream);
        if !self.is_answering() {
            return;
        }
        let answer = match path.as_str() {
            "/v1/audio/transcriptions" => {
                self.log.lock().unwrap().utterances.push(body.len());
                let words = json!({ "text": self.understood }).to_string();
                [head("application/json").as_bytes(), words.as_bytes()].concat()
            }
            "/v1/audio/speech" => {
                let request: Value = serde_json::from_slice(&body).unwrap();
                let sentence = request["input"].as_str().unwrap().to_owned();
                self.log.lock().unwrap().sentences.push(sentence);
                [head("audio/pcm").as_bytes(), &[1; SPOKEN_BYTES]].concat()
            }
            "/v1/chat/completions" => {
                let request: Value = serde_json::from_slice(&body).unwrap();
                let messages = request["messages"].as_array().unwrap().clone();
                let reply = self.turns.as_ref().unwrap().reply(&shown(&messages), |_| true);
                self.log.lock().unwrap().requests.push(messages);
                [head("text/event-stream"), events_of(&reply)].concat().into()
            }
            _ => b"HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\n".to_vec(),
        };
        // A call that is over has closed it.
        let _ = stream.write_all(&answer);
    }
}

fn head(content_type: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n")
}

/// The messages of a request. Results of one message's calls follow each other.
fn shown(messages: &[Value]) -> Vec<Shown> {
    let mut shown: Vec<Shown> = messages
        .iter()
        .map(|message| match message["role"].as_str() {
            Some("user") => Shown::User(message["content"].to_string()),
            Some("tool") => Shown::Results,
            _ => Shown::Other,
        })
        .collect();
    shown.dedup_by(|next, before| *next == Shown::Results && *before == Shown::Results);
    shown
}

fn events_of(reply: &ScriptedReply) -> String {
    let calls = reply.calls.iter().enumerate().map(|(index, call)| {
        let arguments = call["args"].to_string();
        json!({ "index": index, "id": format!("call_{index}"), "type": "function",
                "function": { "name": call["name"], "arguments": arguments } })
    });
    let calls: Vec<Value> = calls.collect();
    let finish = if calls.is_empty() { "stop" } else { "tool_calls" };
    let mut deltas = vec![json!({ "content": reply.text })];
    if !calls.is_empty() {
        deltas.push(json!({ "tool_calls": calls }));
    }
    let mut events: Vec<Value> =
        deltas.into_iter().map(|delta| json!({ "choices": [{ "index": 0, "delta": delta }] })).collect();
    events.push(json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }] }));
    let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    events + "data: [DONE]\n\n"
}

/// The path and the body of a request.
fn read_request(stream: &TcpStream) -> (String, Vec<u8>) {
    let mut reader = BufReader::new(stream);
    let (mut path, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim_end();
        match line.to_ascii_lowercase().strip_prefix("content-length: ") {
            Some(number) => length = number.parse().unwrap(),
            None if line.is_empty() => break,
            None if path.is_empty() => path = line.split(' ').nth(1).unwrap().to_owned(),
            None => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (path, body)
}
