//! A provider that dies in every way that a process can see, and what the server says of it; and what all requests to a
//! provider have in common.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::provider::read_body;
use crate::serve::{ANYWHERE, Server, command, parts, say, words};

/// A provider that does the next thing of its script for each request, and is gone at the end of it.
struct Provider {
    address: SocketAddr,
    /// What it was sent.
    bodies: mpsc::Receiver<String>,
}

enum Act {
    /// Answers with these bytes and closes the connection.
    Send(String),
    /// Holds the connection open without a word.
    Sleep,
}

impl Provider {
    fn start(script: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, bodies) = mpsc::channel();
        thread::spawn(move || {
            let mut held = Vec::new();
            for act in script {
                let (mut stream, _) = listener.accept().unwrap();
                sender.send(read_body(&stream)).unwrap();
                match act {
                    Act::Send(answer) => stream.write_all(answer.as_bytes()).unwrap(),
                    Act::Sleep => held.push(stream),
                }
            }
            // From here on connections are refused.
            drop(listener);
            thread::sleep(Duration::from_secs(600));
        });
        Self { address, bodies }
    }

    fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }
}

fn status(line: &str, headers: &str) -> Act {
    let body = r#"{"error":{"message":"sk-not-for-users"}}"#;
    let length = body.len();
    Act::Send(format!(
        "HTTP/1.1 {line}\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
    ))
}

fn stream(events: &[Value], end: &str) -> Act {
    let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    Act::Send(format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{events}{end}"
    ))
}

fn answers(text: &str) -> Act {
    let events = [
        json!({ "choices": [{ "index": 0, "delta": { "content": text } }] }),
        json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }),
        json!({ "choices": [], "usage": {
            "prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": { "cached_tokens": 64 },
        } }),
    ];
    stream(&events, "data: [DONE]\n\n")
}

fn serve(data: &Path, first: &Provider, fallback: Option<&Provider>) -> Server {
    let mut command = command(data, ANYWHERE);
    command
        .env("QUARTERDECK_TEXT__PROVIDER", "openai")
        .env("QUARTERDECK_TEXT__BASE_URL", first.base_url())
        .env("QUARTERDECK_TEXT__MODEL", "first")
        .env("QUARTERDECK_TEXT__RETRIES", "0")
        .env("QUARTERDECK_TEXT__FIRST_BYTE_SECONDS", "2");
    if let Some(fallback) = fallback {
        command
            .env("QUARTERDECK_FALLBACK__PROVIDER", "openai")
            .env("QUARTERDECK_FALLBACK__BASE_URL", fallback.base_url())
            .env("QUARTERDECK_FALLBACK__MODEL", "second");
    }
    Server::begin(&mut command)
}

fn complete(server: &Server, is_streamed: bool) -> (u16, String, String) {
    let body = json!({ "messages": [{ "role": "user", "content": "Hello" }], "stream": is_streamed });
    server.ask("POST", "/v1/chat/completions", "content-type: application/json\r\n", &body.to_string())
}

fn json_of(server: &Server, path: &str) -> Value {
    let (status, body) = server.get(path);
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).unwrap_or_else(|error| panic!("{path}: {error}: {body}"))
}

fn retry_after(head: &str) -> Option<&str> {
    head.lines().find_map(|line| line.strip_prefix("retry-after: ")).map(str::trim)
}

#[test]
fn every_death_of_a_provider_is_seen_by_probe_metrics_page_and_api() {
    let half = || stream(&[json!({ "choices": [{ "index": 0, "delta": { "content": "Well, " } }] })], "");
    let script = vec![
        status("500 Internal Server Error", ""),
        status("500 Internal Server Error", ""),
        status("429 Too Many Requests", "retry-after: 27\r\n"),
        status("429 Too Many Requests", "retry-after: 27\r\n"),
        half(),
        half(),
        Act::Sleep,
        Act::Sleep,
        answers("I am back."),
    ];
    let (data, provider) = (tempfile::tempdir().unwrap(), Provider::start(script));
    let server = serve(data.path(), &provider, None);
    let see = |kind: &str, expected: u16, wait: &str, failures: u32| {
        let (status, head, body) = complete(&server, false);
        assert_eq!((status, retry_after(&head)), (expected, Some(wait)), "{kind}: {body}");
        assert!(!body.contains("sk-"), "what the provider says is for the log: {body}");
        let (status, _, body) = complete(&server, true);
        // An answer that has begun is broken off inside of its stream.
        assert_eq!(status, if kind == "cut" { 200 } else { expected }, "{kind}: {body}");
        assert!(body.contains("\"error\""), "{body}");
        let ready = json_of(&server, "/readyz");
        assert_eq!((&ready["ready"], &ready["degraded"]), (&json!(true), &json!(true)), "{kind}");
        let reason = ready["reasons"][0].as_str().unwrap();
        assert!(reason.contains(&format!("({kind}, {failures} in a row); no model answers")), "{reason}");
        let trouble = json_of(&server, "/api/me")["modelTrouble"].take();
        assert_eq!((&trouble["kind"], &trouble["failures"]), (&json!(kind), &json!(failures)));
        assert_eq!(json_of(&server, "/api/deck/overview")["models"]["trouble"], trouble);
        let model = json_of(&server, "/metrics")["models"]["openai/first"].take();
        assert_eq!((&model["errors"][kind], &model["isFailing"]), (&json!(2), &json!(true)), "{model}");
    };
    see("overloaded", 503, "5", 2);
    see("rate_limited", 429, "27", 4);
    see("cut", 502, "5", 6);
    see("silent", 503, "5", 8);
    let (status, _, body) = complete(&server, false);
    let completion: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &completion["choices"][0]["message"]["content"]), (200, &json!("I am back.")));
    assert_eq!(completion["usage"]["prompt_tokens_details"]["cached_tokens"], 64);
    assert_eq!(json_of(&server, "/readyz")["degraded"], false);
    let model = json_of(&server, "/metrics")["models"]["openai/first"].take();
    let (cached, uncached) = (&model["tokens"]["cached"], &model["tokens"]["uncached"]);
    assert_eq!((cached, uncached, &model["answered"]), (&json!(64), &json!(36), &json!(1)));
    see("unreachable", 503, "5", 2);
}

#[test]
fn a_fallback_is_used_once_and_said() {
    let (first, second) = (Provider::start(Vec::new()), Provider::start(vec![answers("I stand in.")]));
    let data = tempfile::tempdir().unwrap();
    let server = serve(data.path(), &first, Some(&second));
    let (_, parts) = say(&server, "", json!({ "message": "Hello" }));
    assert_eq!(words(&parts), "I stand in.");
    let said: Vec<_> = parts.iter().filter(|part| part["type"] == "data-model-fallback").collect();
    let [said] = said[..] else { panic!("{parts:?}") };
    assert_eq!(
        said["data"],
        json!({ "model": "openai/first", "fallback": "openai/second", "reason": "unreachable" })
    );
    assert!(second.bodies.recv().unwrap().contains("\"model\":\"second\""));
    let models = json_of(&server, "/metrics")["models"].take();
    assert_eq!(
        (&models["openai/second"]["stoodIn"], &models["openai/second"]["requests"]),
        (&json!(1), &json!(1))
    );
    let reason = json_of(&server, "/readyz")["reasons"][0].take();
    assert!(reason.as_str().unwrap().ends_with("; openai/second answers instead"), "{reason}");
    // Both are gone now.
    let (status, head, body) = complete(&server, true);
    assert_eq!((status, retry_after(&head)), (503, Some("5")), "{body}");
    server.signal("-TERM");
    let (code, log) = server.ended();
    assert_eq!(code, Some(0));
    assert!(log.contains("fallback  openai/second, when the text model fails"), "{log}");
    assert!(log.contains("model failed, fallback asked"), "{log}");
}

/// What two texts have in common at their beginning.
fn shared<'a>(one: &'a str, other: &str) -> &'a str {
    let differs = one.char_indices().zip(other.chars()).find(|((_, a), b)| a != b);
    differs.map_or(one, |((at, _), _)| &one[..at])
}

#[test]
fn all_requests_begin_with_the_same_tools_and_instruction() {
    let provider = Provider::start((0..3).map(|_| answers("Hello.")).collect());
    let data = tempfile::tempdir().unwrap();
    let server = serve(data.path(), &provider, None);
    let chat = |id: &str, text: &str, zone: &str| {
        let body = json!({ "id": id, "messages": [{ "role": "user", "parts": [{ "type": "text", "text": text }] }] });
        let headers = format!("content-type: application/json\r\nx-time-zone: {zone}\r\n");
        let (status, _, body) = server.ask("POST", "/api/chat", &headers, &body.to_string());
        assert_eq!((status, &*words(&parts(&body))), (200, "Hello."), "{body}");
        provider.bodies.recv().unwrap()
    };
    let (ann, bob) = (chat("a", "Hi", "Pacific/Kiritimati"), chat("b", "Is there a berth?", "UTC"));
    let shared = shared(&ann, &bob);
    let situation = ann.find("\\n\\n## Now\\n\\n").unwrap();
    assert!(shared.len() >= situation, "{shared}");
    for part in ["\"tools\":[", "\"name\":\"kb_search\"", "## How to work"] {
        assert!(shared.contains(part), "{part} is shared");
    }
}
