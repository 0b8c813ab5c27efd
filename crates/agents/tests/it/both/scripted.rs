//! A server of chat completions that says what a test has written down, and remembers what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::case::{Id, ScriptedCall};

/// A provider of chat completions.
#[derive(Clone, Default)]
pub(crate) struct Scripted {
    /// Messages of calls; without one, it says something.
    script: Arc<Mutex<VecDeque<Vec<ScriptedCall>>>>,
    asked: Arc<Mutex<Vec<Value>>>,
    calls: Arc<Mutex<usize>>,
}

impl Scripted {
    /// Listens. Where.
    pub(crate) async fn listen(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let running = self.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                running.serve(stream).await;
            }
        });
        format!("http://{address}/v1")
    }

    /// What the model does in the next turn.
    pub(crate) fn will(&self, rounds: &[Vec<ScriptedCall>]) {
        self.script.lock().unwrap().extend(rounds.iter().cloned());
    }

    /// The requests since the last look.
    pub(crate) fn asked(&self) -> Vec<Value> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    async fn serve(&self, mut stream: TcpStream) {
        let request = read(&mut stream).await;
        self.asked.lock().unwrap().push(request);
        let calls = self.script.lock().unwrap().pop_front().unwrap_or_default();
        let mut delta = json!({ "role": "assistant" });
        if calls.is_empty() {
            delta["content"] = "Well.".into();
        } else {
            delta["tool_calls"] =
                calls.iter().enumerate().map(|(index, call)| self.wire(index, call)).collect();
        }
        let finish = if calls.is_empty() { "stop" } else { "tool_calls" };
        let chunk = json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] });
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let answer = format!("{head}data: {chunk}\n\ndata: [DONE]\n\n");
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
    }

    fn wire(&self, index: usize, call: &ScriptedCall) -> Value {
        let mut wire = json!({
            "index": index, "type": "function", "function": { "name": call.name, "arguments": call.args },
        });
        match call.id {
            Id::Fresh => {
                let mut calls = self.calls.lock().unwrap();
                *calls += 1;
                wire["id"] = format!("call-number-{calls}").into();
            }
            Id::Given(id) => wire["id"] = id.into(),
            Id::Missing => {}
        }
        wire
    }
}

/// The body of a request.
async fn read(stream: &mut TcpStream) -> Value {
    let mut bytes = Vec::new();
    loop {
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "the request is cut off");
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        if body.len() >= length.parse::<usize>().unwrap() {
            return serde_json::from_str(body).unwrap();
        }
    }
}
