mod limits;
mod telling;

use std::future::poll_fn;
use std::task::Waker;

use quarterdeck_contracts::Audio;
use quarterdeck_websocket::{Class, Opcode, Role, SocketError};
use serde_json::{Value, json};
use tokio::io::{DuplexStream, duplex};

use super::*;

type Page = WebSocket<DuplexStream>;

/// A page and our end of its line.
fn line() -> (Page, BrowserLine<DuplexStream>) {
    let (page, ours) = duplex(1 << 20);
    let ties = Ties {
        resume_token: Box::new(|session| format!("seal of {session}")),
        now_ms: Box::new(|| 1_000_000),
        _place: None,
    };
    let socket = WebSocket::new(ours, Role::Server, LIMITS, &[]);
    let page = WebSocket::new(page, Role::Client, Limits { max_message_bytes: 1 << 20 }, &[]);
    (page, BrowserLine::new(socket, ties))
}

fn bytes(page: &mut Page, bytes: &[u8]) {
    page.send(Opcode::Binary, Class::Control, bytes.len(), |out| out.extend_from_slice(bytes));
}

/// What of what was asked can be kept.
fn kept(asked: &ClientMessage<'_>) -> String {
    match asked {
        ClientMessage::Audio(Audio::Pcm(bytes)) => format!("{} bytes", bytes.len()),
        ClientMessage::Audio(Audio::Base64(data)) => format!("{} letters", data.len()),
        other => format!("{other:?}"),
    }
}

/// Drives the line as the agent does, until nothing more comes of itself.
async fn drive(line: &mut BrowserLine<DuplexStream>) -> (Vec<String>, Option<Disconnect>) {
    let mut all = Vec::new();
    loop {
        let filled = poll_fn(|context| match line.poll_fill(context) {
            Poll::Pending => Poll::Ready(None),
            Poll::Ready(filled) => Poll::Ready(Some(filled)),
        });
        let filled = filled.await;
        while let Some(asked) = line.next() {
            all.push(kept(&asked));
        }
        let _ = line.poll_flush(&mut Context::from_waker(Waker::noop()));
        match filled {
            Some(Ok(())) => {}
            Some(Err(gone)) => return (all, Some(gone)),
            None => return (all, None),
        }
    }
}

/// What the page reads, texts as JSON and bytes by their number, and how it was closed.
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
async fn what_a_page_says_reaches_the_agent() {
    let (mut page, mut line) = line();
    bytes(&mut page, &[0; 640]);
    bytes(&mut page, &[]);
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
    let (asked, gone) = drive(&mut line).await;
    assert_eq!(gone, None);
    let expected = [
        "640 bytes",
        "Alive",
        "8 letters",
        "Text(\"plain\")",
        "Text(\"with a \\\"quote\\\"\")",
        "Confirm { token: \"cnf_1\", is_approved: true }",
        "Drained",
        "Interrupt",
        "Stop",
        "Alive",
        "Alive",
    ];
    assert_eq!(asked, expected);
    assert_eq!(read(&mut page).await, (vec![json!({ "type": "pong" })], None));
}

#[tokio::test]
async fn what_is_wrong_is_answered_and_the_line_stays() {
    let (mut page, mut line) = line();
    page.send_text(r#"{"type":"start"}"#);
    page.send_text("hello");
    bytes(&mut page, &[1, 2, 3]);
    page.send_text(r#"{"type":"ping"}"#);
    page.flush().await.unwrap();
    let (asked, gone) = drive(&mut line).await;
    assert_eq!((asked.len(), gone), (4, None));
    let (read, closed) = read(&mut page).await;
    assert_eq!(closed, None);
    assert_eq!(read[0], error("VALIDATION", "The call has begun already; `start` is said once."));
    assert_eq!(
        read[1],
        error("VALIDATION", "A message is a JSON object with a `type`, or bytes, which are audio.")
    );
    assert!(read[2]["error"]["message"].as_str().unwrap().contains("3 bytes"), "{}", read[2]);
    assert_eq!(read[3..], [json!({ "type": "pong" })]);
}

#[tokio::test]
async fn a_page_that_closes_is_told_apart_from_one_that_is_lost() {
    let (mut page, mut line) = line();
    page.close(CloseCode::NORMAL, "");
    page.flush().await.unwrap();
    assert_eq!(drive(&mut line).await, (Vec::new(), Some(Disconnect::Closed)));
    assert_eq!(read(&mut page).await.1, Some(1000), "the close frame is answered");

    let (page, mut line) = self::line();
    drop(page);
    assert_eq!(drive(&mut line).await, (Vec::new(), Some(Disconnect::Lost)));
}

#[tokio::test]
async fn the_first_message_is_start() {
    let (mut page, mut line) = line();
    page.ping();
    page.send_text(r#"{"type":"start","sessionId":"ses_1","audio":"base64"}"#);
    page.send_text(r#"{"type":"stop"}"#);
    page.flush().await.unwrap();
    let First::Start(start) = line.first().await else { panic!() };
    assert_eq!((start.session_id.as_deref(), line.form), (Some("ses_1"), Form::Base64));
    assert_eq!(drive(&mut line).await.0, ["Stop"], "what came with it is not waited for");

    let (mut page, mut line) = self::line();
    page.send_text("hello");
    page.send_text(r#"{"type":"sing"}"#);
    page.send_text(r#"{"type":"start"}"#);
    page.flush().await.unwrap();
    assert!(matches!(line.first().await, First::Start(_)), "what cannot be read can be said again");

    for other in [r#"{"type":"ping"}"#, r#"{"type":"audio","data":"AAAAAAAA"}"#] {
        let (mut page, mut line) = self::line();
        page.send_text(other);
        page.flush().await.unwrap();
        assert!(matches!(line.first().await, First::Other(_)), "{other}");
    }
    let (mut page, mut line) = self::line();
    bytes(&mut page, &[0; 640]);
    page.flush().await.unwrap();
    assert!(matches!(line.first().await, First::Other(_)));

    let (mut page, mut line) = self::line();
    page.close(CloseCode::NORMAL, "");
    page.flush().await.unwrap();
    assert!(matches!(line.first().await, First::Disconnect));
}
