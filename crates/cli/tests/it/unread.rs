//! An answer that its reader does not read, at the server as an operator starts it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::serve::Server;

#[test]
fn twenty_megabytes_that_are_not_read_are_neither_buffered_nor_kept() {
    let data = tempfile::tempdir().unwrap();
    let script = data.path().join("script.json");
    let long = vec!["x".repeat(2_000); 10_000].join(" ");
    std::fs::write(&script, json!([{ "text": long }, { "text": "Hello." }]).to_string()).unwrap();
    let server = Server::start(&data.path().join("data"), &["--rehearsal-script", script.to_str().unwrap()]);
    let (_, head, _) = server.ask("GET", "/api/me", "", "");
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("cookie: {}\r\n", cookie.split(';').next().unwrap());

    let mut unread = TcpStream::connect(server.address).unwrap();
    unread.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let body = json!({ "id": "c", "message": "Go on." }).to_string();
    let (address, length) = (server.address, body.len());
    let head = format!(
        "POST /api/chat HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {length}\r\n{cookie}\r\n"
    );
    write!(unread, "{head}{body}").unwrap();

    let memory = || {
        let (_, _, metrics) = server.ask("GET", "/metrics", "", "");
        let memory = serde_json::from_str::<Value>(&metrics).unwrap()["memory"].clone();
        (memory["answers"].as_u64().unwrap(), memory["conversations"].as_u64().unwrap())
    };
    let began = Instant::now();
    let stored = loop {
        let answers = memory().0;
        assert!(answers < 1_200_000, "{answers} bytes wait for the reader");
        let (_, _, session) = server.ask("GET", "/api/sessions/c", &cookie, "");
        if session.len() > 4_000_000 {
            break session;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "the turn has no end");
        std::thread::sleep(Duration::from_millis(100));
    };
    assert!(stored.len() < 5_000_000, "an answer is cut at its largest length: {}", stored.len());
    assert!(memory().1 < 100_000, "it stays in the store");
    let (status, _, _) = server.ask("POST", "/api/chat", "", &json!({ "message": "Hello" }).to_string());
    assert_eq!(status, 200, "others are answered");

    let mut answer = String::new();
    unread.read_to_string(&mut answer).unwrap();
    for part in ["data-left-out", "\"finishReason\":\"length\"", "data: [DONE]"] {
        assert!(answer.contains(part), "{part}");
    }
    assert!(answer.len() < 2_500_000, "{}", answer.len());
}
