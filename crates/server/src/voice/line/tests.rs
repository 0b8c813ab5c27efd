use std::future::poll_fn;
use std::task::Waker;

use quarterdeck_contracts::{Audio, Meta, Outcome, Speaker, ToolResponse};
use quarterdeck_runtime::{Block, PendingEnd};
use quarterdeck_websocket::{Broken, Class, Opcode, Role};
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
    let page = WebSocket::new(page, Role::Client, Limits { message: 1 << 20 }, &[]);
    (page, BrowserLine::new(socket, ties))
}

fn bytes(page: &mut Page, bytes: &[u8]) {
    page.send(Opcode::Binary, Class::Control, bytes.len(), |out| out.extend_from_slice(bytes));
}

/// What of what was asked can be kept.
fn kept(asked: &Asked<'_>) -> String {
    match asked {
        Asked::Audio(Audio::Pcm(bytes)) => format!("{} bytes", bytes.len()),
        Asked::Audio(Audio::Base64(data)) => format!("{} letters", data.len()),
        other => format!("{other:?}"),
    }
}

/// Drives the line as the agent does, until nothing more comes of itself.
async fn drive(line: &mut BrowserLine<DuplexStream>) -> (Vec<String>, Option<Gone>) {
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
            Poll::Ready(Err(Broken::Ended)) | Poll::Pending => return (read, None),
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

#[tokio::test(start_paused = true)]
async fn a_page_that_is_wrong_all_the_time_is_sent_away() {
    let (mut page, mut line) = line();
    for _ in 0..20 {
        page.send_text("nonsense");
    }
    page.flush().await.unwrap();
    assert_eq!(drive(&mut line).await.1, None);
    // Three seconds are worth one more answer.
    tokio::time::advance(Duration::from_secs(3)).await;
    page.send_text("nonsense");
    page.flush().await.unwrap();
    assert_eq!(drive(&mut line).await.1, None);
    assert_eq!(read(&mut page).await.0.len(), 21);
    page.send_text("nonsense");
    page.send_text(r#"{"type":"text","text":"after"}"#);
    page.flush().await.unwrap();
    let (asked, gone) = drive(&mut line).await;
    assert_eq!(gone, Some(Gone::Expelled("too many messages that are wrong")));
    assert_eq!(asked, ["Alive"], "nothing is heard after that");
    let (read, closed) = read(&mut page).await;
    let message = "The connection is closed because of too many messages that are wrong.";
    assert_eq!((read, closed), (vec![error("RATE_LIMIT", message)], Some(1008)));
}

#[tokio::test(start_paused = true)]
async fn frames_that_come_too_fast_are_a_flood() {
    let (mut page, mut line) = line();
    let mut send = async |count: usize| {
        for _ in 0..count {
            bytes(&mut page, &[]);
        }
        page.flush().await.unwrap();
        drive(&mut line).await.1
    };
    assert_eq!(send(1_000).await, None);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(send(300).await, None);
    assert_eq!(send(1).await, Some(Gone::Expelled("too many frames")));
    let (read, closed) = read(&mut page).await;
    assert_eq!(read, [error("RATE_LIMIT", "The connection is closed because of too many frames.")]);
    assert_eq!(closed, Some(1008));
}

#[tokio::test(start_paused = true)]
async fn audio_faster_than_anybody_speaks_is_a_flood_in_either_form() {
    let second = vec![0; 32_000];
    let as_text =
        format!(r#"{{"type":"audio","data":"{}"}}"#, base64_simd::STANDARD.encode_to_string(&second));
    for in_base64 in [false, true] {
        let (mut page, mut line) = line();
        let mut send = async |seconds: usize| {
            for _ in 0..seconds {
                if in_base64 {
                    page.send_text(&as_text);
                } else {
                    bytes(&mut page, &second);
                }
            }
            page.flush().await.unwrap();
            drive(&mut line).await.1
        };
        assert_eq!(send(9).await, None, "what was kept while the network was gone");
        for _ in 0..20 {
            tokio::time::advance(Duration::from_secs(1)).await;
            assert_eq!(send(1).await, None);
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(send(20).await, Some(Gone::Expelled("audio faster than anybody speaks")));
        assert_eq!(read(&mut page).await.1, Some(1008));
    }
}

#[tokio::test]
async fn a_message_that_is_too_large_gets_a_typed_error_and_1009() {
    let (mut page, mut line) = line();
    page.send_text(&"x".repeat((64 << 10) + 1));
    page.flush().await.unwrap();
    assert_eq!(drive(&mut line).await.1, Some(Gone::Expelled("a message that is too large")));
    let message = "The connection is closed because of a message that is too large.";
    assert_eq!(read(&mut page).await, (vec![error("VALIDATION", message)], Some(1009)));
}

#[tokio::test]
async fn a_page_that_closes_is_told_apart_from_one_that_is_lost() {
    let (mut page, mut line) = line();
    page.close(CloseCode::NORMAL, "");
    page.flush().await.unwrap();
    assert_eq!(drive(&mut line).await, (Vec::new(), Some(Gone::Closed)));
    assert_eq!(read(&mut page).await.1, Some(1000), "the close frame is answered");

    let (page, mut line) = self::line();
    drop(page);
    assert_eq!(drive(&mut line).await, (Vec::new(), Some(Gone::Lost)));
}

#[tokio::test]
async fn control_that_nobody_reads_does_not_pile_up() {
    let (page, ours) = duplex(1_000);
    let ties = Ties { resume_token: Box::new(str::to_owned), now_ms: Box::new(|| 0), _place: None };
    let mut line = BrowserLine::new(WebSocket::new(ours, Role::Server, LIMITS, &[]), ties);
    let words = "x".repeat(1_000);
    for _ in 0..10_000 {
        line.send(Told::Transcript { by: Speaker::Model, text: &words, is_final: true });
        let _ = line.poll_flush(&mut Context::from_waker(Waker::noop()));
    }
    assert!(line.waiting() < (256 << 10) + 2_000, "{}", line.waiting());
    assert_eq!(drive(&mut line).await.1, Some(Gone::Expelled("messages that are not read")));
    drop(page);
}

#[tokio::test]
async fn audio_alone_is_nobodys_fault_and_can_be_thrown_away() {
    let (mut page, mut line) = line();
    for _ in 0..600 {
        line.send(Told::Audio(Audio::Pcm((&[0; 1_000][..]).into())));
    }
    line.send(Told::Interrupted);
    assert!(line.waiting() > 600_000);
    assert_eq!(line.drop_audio(0), 600 * 1_004);
    assert_eq!(drive(&mut line).await.1, None);
    assert_eq!(read(&mut page).await, (vec![json!({ "type": "interrupted" })], None));
}

/// What a page that takes audio in this form reads.
async fn heard(form: Form, audio: Audio<'_>) -> Value {
    let (mut page, mut line) = line();
    line.form = form;
    line.send(Told::Audio(audio));
    drive(&mut line).await;
    page.fill().await.unwrap();
    match page.next().unwrap().unwrap() {
        Message::Text(text) => serde_json::from_str(text).unwrap(),
        Message::Binary(bytes) => json!(bytes),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn audio_goes_out_in_the_form_that_the_page_takes() {
    let samples: Vec<u8> = (0..=255).collect();
    let encoded = base64_simd::STANDARD.encode_to_string(&samples);
    let as_json = json!({ "type": "audio", "data": encoded });
    let pcm = || Audio::Pcm((&samples).into());
    let base64 = || Audio::Base64((&encoded).into());
    assert_eq!(heard(Form::Binary, pcm()).await, json!(samples));
    assert_eq!(heard(Form::Binary, base64()).await, json!(samples));
    assert_eq!(heard(Form::Base64, pcm()).await, as_json);
    assert_eq!(heard(Form::Base64, base64()).await, as_json);
    let broken = Audio::Base64("AAAA!AAA".into());
    assert_eq!(heard(Form::Binary, broken).await, json!(vec![0; 6]), "silence, and no panic");
}

fn response(outcome: Outcome) -> ToolResponse {
    let meta = Meta {
        tool_id: "probe".into(),
        tool_version: "1.0.0".into(),
        registry_version: "r".into(),
        response_schema_version: "1".into(),
        duration: 12,
        timestamp: String::new(),
        retry_count: None,
        parent_call_id: None,
        background_task_id: None,
        idempotent_cache_hit: None,
        original_turn: None,
    };
    ToolResponse { outcome, intents: Vec::new(), meta }
}

#[tokio::test]
async fn everything_that_is_told_has_its_message() {
    let (mut page, mut line) = line();
    let args = json!({ "day": "today" });
    let failed = ToolError { details: Some(json!("inside")), ..ToolError::new(ErrorType::NotFound, "No.") };
    let end = PendingEnd { closing_message: Some("Bye.".into()), ..PendingEnd::because("goal_achieved") };
    let block: Block =
        serde_json::from_value(json!({ "untilMs": 1_059_001, "message": "Please calm down." })).unwrap();
    let request = serde_json::from_value(json!({
        "token": "cnf_1", "expires": 5, "tool": "probe", "args": args, "preview": "Do it?",
    }));
    let (good, bad) =
        (response(Outcome::Success(json!({ "a": 1 }))), response(Outcome::Failure(failed.clone())));
    let pcm16 = |rate: u32| json!({ "encoding": "pcm16", "rate": rate, "channels": 1 });
    let shown = json!({ "type": "NOT_FOUND", "message": "No.", "retryable": false });
    let all = [
        (
            Told::Ready {
                session_id: "ses_1",
                is_resumed: true,
                tools_version: "r",
                provider: "gemini/live",
            },
            json!({
                "type": "ready", "sessionId": "ses_1", "resumeToken": "seal of ses_1", "resumed": true,
                "toolsVersion": "r", "provider": "gemini/live",
                "audio": { "input": pcm16(16_000), "output": pcm16(24_000) },
            }),
        ),
        (
            Told::Transcript { by: Speaker::Person, text: "Hi", is_final: false },
            json!({ "type": "transcript", "role": "user", "text": "Hi", "final": false }),
        ),
        (
            Told::Transcript { by: Speaker::Model, text: "Yes?", is_final: true },
            json!({ "type": "transcript", "role": "assistant", "text": "Yes?", "final": true }),
        ),
        (
            Told::Call { id: "c1", name: "probe", args: &args },
            json!({ "type": "tool_call", "callId": "c1", "name": "probe", "args": args }),
        ),
        (
            Told::Result { id: "c1", response: &good, gates: None },
            json!({ "type": "tool_result", "callId": "c1", "ok": true, "duration": 12 }),
        ),
        (
            Told::Result { id: "c1", response: &bad, gates: None },
            json!({ "type": "tool_result", "callId": "c1", "ok": false, "duration": 12, "error": shown }),
        ),
        (
            Told::Confirmation { id: "c1", request: &request.unwrap() },
            json!({
                "type": "confirmation_request", "callId": "c1", "token": "cnf_1", "tool": "probe", "args": args,
                "preview": "Do it?", "expires": 5,
            }),
        ),
        (
            Told::Progress { id: "c1", text: "Looking." },
            json!({ "type": "progress", "callId": "c1", "text": "Looking." }),
        ),
        (Told::Interrupted, json!({ "type": "interrupted" })),
        (Told::TurnComplete, json!({ "type": "turn_complete" })),
        (
            Told::Blocked(&block),
            json!({
                "type": "timeout", "durationSeconds": 60, "timeoutUntil": "1970-01-01T00:17:39.001Z",
                "farewellMessage": "Please calm down.",
            }),
        ),
        (
            Told::End(&end),
            json!({
                "type": "session_end", "reason": "goal_achieved", "closingMessage": "Bye.", "textResponse": null,
            }),
        ),
        (Told::Error(&failed), json!({ "type": "error", "error": shown })),
        (Told::GoingAway { in_ms: 900 }, json!({ "type": "going_away", "inMs": 900 })),
        (Told::Message(&args), json!({ "type": "message", "data": args })),
    ];
    for (told, json) in all {
        line.send(told.clone());
        drive(&mut line).await;
        assert_eq!(read(&mut page).await, (vec![json], None), "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn hanging_up_says_why_and_does_not_wait_for_ever() {
    for (why, code) in [
        (HangUp::Over, 1000),
        (HangUp::Stopping, 1001),
        (HangUp::TakenOver, 4001),
        (HangUp::Refused, 1008),
        (HangUp::Full, 1013),
        (HangUp::Idle, 4002),
        (HangUp::Failed, 1011),
    ] {
        let (mut page, mut line) = line();
        line.send(Told::TurnComplete);
        let began = tokio::time::Instant::now();
        // The page reads, and never closes its end.
        Box::new(line).hang_up(why).await;
        assert_eq!(began.elapsed(), PATIENCE);
        assert_eq!(read(&mut page).await, (vec![json!({ "type": "turn_complete" })], Some(code)));
    }
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

    for other in [r#"{"type":"ping"}"#, "hello", r#"{"type":"audio","data":"AAAAAAAA"}"#] {
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
    assert!(matches!(line.first().await, First::Gone));
}
