//! A model provider for the tests: OpenAI's protocol over a real socket, with exactly the calls that a test wants.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;

use serde_json::{Value, json};

pub(crate) struct Provider {
    pub(crate) address: std::net::SocketAddr,
    /// What it was sent, one body for each request.
    pub(crate) bodies: mpsc::Receiver<String>,
}

/// A provider with OpenAI's protocol whose model calls `validate_email` once for each text of arguments, all in one
/// message, and then says a word.
pub(crate) fn provider(arguments: &[String]) -> Provider {
    let calls = arguments.iter().enumerate().map(|(index, arguments)| {
        json!({ "index": index, "id": format!("call_0123456789_{index}"), "type": "function",
                "function": { "name": "validate_email", "arguments": arguments } })
    });
    scripted_provider(vec![json!({ "tool_calls": calls.collect::<Vec<_>>() }), json!({ "content": "Done." })])
}

/// A provider with OpenAI's protocol that answers one request after the other with these deltas.
pub(crate) fn scripted_provider(replies: Vec<Value>) -> Provider {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, bodies) = mpsc::channel();
    thread::spawn(move || {
        for (delta, stream) in replies.iter().zip(listener.incoming().map(Result::unwrap)) {
            sender.send(read_body(&stream)).unwrap();
            reply(stream, delta);
        }
    });
    Provider { address, bodies }
}

pub(crate) fn read_body(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end().to_ascii_lowercase().strip_prefix("content-length: ") {
            Some(number) => length = number.parse().unwrap(),
            None if line.trim_end().is_empty() => break,
            None => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    String::from_utf8(body).unwrap()
}

fn reply(mut stream: TcpStream, delta: &Value) {
    let finish = if delta.get("content").is_some() { "stop" } else { "tool_calls" };
    let events = [
        json!({ "choices": [{ "index": 0, "delta": delta }] }),
        json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }] }),
    ];
    let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{events}data: [DONE]\n\n"
    )
    .unwrap();
}
