mod limits;
mod sending;

use std::future::poll_fn;
use std::task::Waker;

use quarterdeck_contracts::Audio;
use quarterdeck_websocket::{Class, Opcode, Role, SocketError};
use serde_json::{Value, json};
use tokio::io::{DuplexStream, duplex};

use super::*;

type Page = WebSocket<DuplexStream>;

/// A page and the server's link to it.
fn link() -> (Page, WebSocketLink<DuplexStream>) {
    let (page, ours) = duplex(1 << 20);
    let context = LinkContext {
        resume_token: Box::new(|session| format!("token of {session}")),
        now_ms: Box::new(|| 1_000_000),
        show: Shown::default(),
        line: RequestLine::default(),
        _permit: None,
    };
    let socket = WebSocket::new(ours, Role::Server, LIMITS, &[]);
    let page = WebSocket::new(page, Role::Client, Limits { max_message_bytes: 1 << 20 }, &[]);
    (page, WebSocketLink::new(socket, context))
}

fn send_bytes(page: &mut Page, bytes: &[u8]) {
    page.send(Opcode::Binary, Class::Control, bytes.len(), |out| out.extend_from_slice(bytes));
}

/// An owned description of a message.
fn describe(message: &ClientMessage<'_>) -> String {
    match message {
        ClientMessage::Audio(Audio::Pcm(bytes)) => format!("{} bytes", bytes.len()),
        ClientMessage::Audio(Audio::Base64(data)) => format!("{} letters", data.len()),
        other => format!("{other:?}"),
    }
}

/// Drives the link as the agent does, until it is pending.
async fn drive(link: &mut WebSocketLink<DuplexStream>) -> (Vec<String>, Option<Disconnect>) {
    let mut all = Vec::new();
    loop {
        let filled = poll_fn(|context| match link.poll_fill(context) {
            Poll::Pending => Poll::Ready(None),
            Poll::Ready(filled) => Poll::Ready(Some(filled)),
        });
        let filled = filled.await;
        while let Some(message) = link.next() {
            all.push(describe(&message));
        }
        let _ = link.poll_flush(&mut Context::from_waker(Waker::noop()));
        match filled {
            Some(Ok(())) => {}
            Some(Err(disconnect)) => return (all, Some(disconnect)),
            None => return (all, None),
        }
    }
}

/// What the page receives, texts as JSON and bytes by their count, and the close code.
async fn read(page: &mut Page) -> (Vec<Value>, Option<u16>) {
    let mut read = Vec::new();
    loop {
        while let Some(message) = page.next() {
            match message.unwrap() {
                Message::Text(text) => read.push(serde_json::from_str(text).unwrap()),
                Message::Binary(bytes) => read.push(json!(bytes.len())),
                Message::Close(code, _) => return (read, code.map(|code| code.0)),
                Message::Ping(_) | Message::Pong => {}
            }
        }
        let filled = poll_fn(|context| Poll::Ready(page.poll_fill(context))).await;
        match filled {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(SocketError::Ended)) | Poll::Pending => return (read, None),
            Poll::Ready(Err(error)) => panic!("{error}"),
        }
    }
}

fn error(kind: &str, message: &str) -> Value {
    json!({ "type": "error", "error": { "type": kind, "message": message, "retryable": kind == "RATE_LIMIT" } })
}

#[tokio::test]
async fn a_clients_messages_reach_the_agent() {
    let (mut page, mut link) = link();
    send_bytes(&mut page, &[0; 640]);
    send_bytes(&mut page, &[]);
    for text in [
        r#"{"type":"audio","data":"AAAAAAAA"}"#,
        r#"{"type":"text","text":"plain"}"#,
        r#"{"type":"text","text":"with a \"quote\""}"#,
        r#"{"type":"confirm","token":"cnf\u005f1","approve":true}"#,
        r#"{"type":"playback","state":"drained"}"#,
        r#"{"type":"interrupt"}"#,
        r#"{"type":"stop"}"#,
        r#"{"type":"ping"}"#,
    ] {
        page.send_text(text);
    }
    page.ping();
    page.flush().await.unwrap();
    let (messages, disconnect) = drive(&mut link).await;
    assert_eq!(disconnect, None);
    let expected = [
        "640 bytes",
        "KeepAlive",
        "8 letters",
        "Text(\"plain\")",
        "Text(\"with a \\\"quote\\\"\")",
        "Confirm { token: \"cnf_1\", is_approved: true }",
        "Drained",
        "Interrupt",
        "Stop",
        "KeepAlive",
        "KeepAlive",
    ];
    assert_eq!(messages, expected);
    assert_eq!(read(&mut page).await, (vec![json!({ "type": "pong" })], None));
}

#[tokio::test]
async fn an_invalid_message_gets_an_error_and_the_link_stays_open() {
    let (mut page, mut link) = link();
    page.send_text(r#"{"type":"start"}"#);
    page.send_text("hello");
    send_bytes(&mut page, &[1, 2, 3]);
    page.send_text(r#"{"type":"ping"}"#);
    page.flush().await.unwrap();
    let (messages, disconnect) = drive(&mut link).await;
    assert_eq!((messages.len(), disconnect), (4, None));
    let (read, closed) = read(&mut page).await;
    assert_eq!(closed, None);
    assert_eq!(read[0], error("VALIDATION", "The call has started; send `start` once."));
    assert_eq!(read[1], error("VALIDATION", "Send a JSON object with a `type`, or audio as bytes."));
    assert!(read[2]["error"]["message"].as_str().unwrap().contains("3 bytes"), "{}", read[2]);
    assert_eq!(read[3..], [json!({ "type": "pong" })]);
}

#[tokio::test]
async fn a_close_differs_from_a_lost_connection() {
    let (mut page, mut link) = link();
    page.close(CloseCode::NORMAL, "");
    page.flush().await.unwrap();
    assert_eq!(drive(&mut link).await, (Vec::new(), Some(Disconnect::Closed)));
    assert_eq!(read(&mut page).await.1, Some(1000), "the close frame is answered");

    let (page, mut link) = self::link();
    drop(page);
    assert_eq!(drive(&mut link).await, (Vec::new(), Some(Disconnect::Lost)));
}

#[tokio::test]
async fn the_first_message_is_start() {
    let (mut page, mut link) = link();
    page.ping();
    page.send_text(r#"{"type":"start","sessionId":"ses_1","audio":"base64"}"#);
    page.send_text(r#"{"type":"stop"}"#);
    page.flush().await.unwrap();
    let FirstMessage::Start(start) = link.first().await else { panic!() };
    assert_eq!((start.session_id.as_deref(), link.format), (Some("ses_1"), AudioFormat::Base64));
    assert_eq!(drive(&mut link).await.0, ["Stop"], "what arrived with it is read at once");

    let (mut page, mut link) = self::link();
    page.send_text("hello");
    page.send_text(r#"{"type":"sing"}"#);
    page.send_text(r#"{"type":"start"}"#);
    page.flush().await.unwrap();
    assert!(matches!(link.first().await, FirstMessage::Start(_)), "a malformed `start` can be sent again");

    for other in [r#"{"type":"ping"}"#, r#"{"type":"audio","data":"AAAAAAAA"}"#] {
        let (mut page, mut link) = self::link();
        page.send_text(other);
        page.flush().await.unwrap();
        assert!(matches!(link.first().await, FirstMessage::Other(_)), "{other}");
    }
    let (mut page, mut link) = self::link();
    send_bytes(&mut page, &[0; 640]);
    page.flush().await.unwrap();
    assert!(matches!(link.first().await, FirstMessage::Other(_)));

    let (mut page, mut link) = self::link();
    page.close(CloseCode::NORMAL, "");
    page.flush().await.unwrap();
    assert!(matches!(link.first().await, FirstMessage::Disconnect));
}
