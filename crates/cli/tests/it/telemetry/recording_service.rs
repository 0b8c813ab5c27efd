//! A model and a web service at one address, which keep the `traceparent` of every request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// Where the model is asked. Everything else is the web service.
const MODEL_PATH: &str = "/v1/chat/completions";

#[derive(Clone)]
pub(super) struct RecordingService {
    pub(super) port: u16,
    /// What the model answers, one delta for each request.
    replies: Arc<Mutex<std::vec::IntoIter<Value>>>,
    requests: Arc<Mutex<Vec<Request>>>,
}

struct Request {
    path: String,
    traceparent: Option<String>,
}

impl RecordingService {
    pub(super) fn start(replies: Vec<Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let replies = Arc::new(Mutex::new(replies.into_iter()));
        let service = Self { port, replies, requests: Arc::default() };
        let running = service.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                running.answer(stream);
            }
        });
        service
    }

    pub(super) fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    pub(super) fn model_traceparents(&self) -> Vec<Option<String>> {
        self.traceparents(|path| path == MODEL_PATH)
    }

    pub(super) fn web_traceparents(&self) -> Vec<Option<String>> {
        self.traceparents(|path| path != MODEL_PATH)
    }

    fn traceparents(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<Option<String>> {
        let requests = self.requests.lock().unwrap();
        let wanted = requests.iter().filter(|request| is_wanted(&request.path));
        wanted.map(|request| request.traceparent.clone()).collect()
    }

    fn answer(&self, mut stream: TcpStream) {
        let request = read_request(&stream);
        let (kind, body) = match request.path.as_str() {
            MODEL_PATH => ("text/event-stream", events(self.replies.lock().unwrap().next())),
            _ => ("application/json", "{}".to_owned()),
        };
        self.requests.lock().unwrap().push(request);
        let length = body.len();
        let _ = write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
    }
}

fn read_request(stream: &TcpStream) -> Request {
    let mut lines = BufReader::new(stream);
    let (mut path, mut traceparent, mut length) = (String::new(), None, 0);
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        match line.trim_end().split_once(": ") {
            Some(("traceparent", value)) => traceparent = Some(value.to_owned()),
            Some(("content-length", value)) => length = value.parse().unwrap(),
            Some(_) => {}
            None if path.is_empty() => path = line.split(' ').nth(1).unwrap_or_default().to_owned(),
            None => break,
        }
    }
    lines.read_exact(&mut vec![0; length]).unwrap();
    Request { path, traceparent }
}

fn events(delta: Option<Value>) -> String {
    let delta = delta.unwrap_or_else(|| json!({ "content": "Done." }));
    let finish = if delta.get("content").is_some() { "stop" } else { "tool_calls" };
    let events = [
        json!({ "choices": [{ "index": 0, "delta": delta }] }),
        json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }] }),
    ];
    let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    events + "data: [DONE]\n\n"
}
