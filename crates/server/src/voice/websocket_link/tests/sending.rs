use quarterdeck_contracts::{Meta, Outcome, Speaker, ToolResponse};
use quarterdeck_runtime::{Block, PendingEnd};

use super::*;

/// What a page with this audio format receives.
async fn received(format: AudioFormat, audio: Audio<'_>) -> Value {
    let (mut page, mut link) = link();
    link.format = format;
    link.send(ServerMessage::Audio(audio));
    drive(&mut link).await;
    page.fill().await.unwrap();
    match page.next().unwrap().unwrap() {
        Message::Text(text) => serde_json::from_str(text).unwrap(),
        Message::Binary(bytes) => json!(bytes),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn audio_is_sent_in_the_clients_format() {
    let samples: Vec<u8> = (0..=255).collect();
    let encoded = base64_simd::STANDARD.encode_to_string(&samples);
    let as_json = json!({ "type": "audio", "data": encoded });
    let pcm = || Audio::Pcm((&samples).into());
    let base64 = || Audio::Base64((&encoded).into());
    assert_eq!(received(AudioFormat::Binary, pcm()).await, json!(samples));
    assert_eq!(received(AudioFormat::Binary, base64()).await, json!(samples));
    assert_eq!(received(AudioFormat::Base64, pcm()).await, as_json);
    assert_eq!(received(AudioFormat::Base64, base64()).await, as_json);
    let broken = Audio::Base64("AAAA!AAA".into());
    assert_eq!(received(AudioFormat::Binary, broken).await, json!(vec![0; 6]), "silence, and no panic");
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
async fn every_server_message_has_its_json() {
    let (mut page, mut link) = link();
    let args = json!({ "day": "today" });
    let failed = ToolError { details: Some(json!("inside")), ..ToolError::new(ErrorType::NotFound, "No.") };
    let end = PendingEnd { closing_message: Some("Bye.".into()), ..PendingEnd::with_reason("goal_achieved") };
    let block: Block =
        serde_json::from_value(json!({ "untilMs": 1_059_001, "message": "Please calm down." })).unwrap();
    let request = serde_json::from_value(json!({
        "token": "cnf_1", "expires": 5, "tool": "probe", "args": args, "preview": "Do it?",
    }));
    let reasoned = serde_json::from_value(json!({
        "token": "cnf_2", "expires": 5, "tool": "probe", "args": args, "preview": "Do it?", "reason": "It is a lot.",
    }));
    let with_code = serde_json::from_value(json!({
        "token": "cnf_3", "expires": 5, "tool": "probe", "args": args, "preview": "Do it?", "confirmBy": "code",
        "code": "4170",
    }));
    let (good, bad) =
        (response(Outcome::Success(json!({ "a": 1 }))), response(Outcome::Failure(failed.clone())));
    let pcm16 = |rate: u32| json!({ "encoding": "pcm16", "rate": rate, "channels": 1 });
    let shown = json!({ "type": "NOT_FOUND", "message": "No.", "retryable": false });
    let gates = quarterdeck_runtime::gates::Trace::default();
    let all = [
        (
            ServerMessage::Ready {
                session_id: "ses_1",
                is_resumed: true,
                tools_version: "r",
                provider: "gemini/live",
                speaks: true,
            },
            json!({
                "type": "ready", "sessionId": "ses_1", "resumeToken": "token of ses_1", "resumed": true,
                "toolsVersion": "r", "provider": "gemini/live", "speaks": true,
                "audio": { "input": pcm16(16_000), "output": pcm16(24_000) },
            }),
        ),
        (
            ServerMessage::Transcript { by: Speaker::User, text: "Hi", is_final: false, is_late: false },
            json!({ "type": "transcript", "role": "user", "text": "Hi", "final": false }),
        ),
        (
            ServerMessage::Transcript { by: Speaker::Model, text: "Yes?", is_final: true, is_late: false },
            json!({ "type": "transcript", "role": "assistant", "text": "Yes?", "final": true }),
        ),
        (
            ServerMessage::ToolCall { id: "c1", name: "probe", args: &args },
            json!({ "type": "tool_call", "callId": "c1", "name": "probe", "args": args }),
        ),
        (
            ServerMessage::ToolResult { id: "c1", response: &good, gates: None },
            json!({ "type": "tool_result", "callId": "c1", "ok": true, "duration": 12 }),
        ),
        (
            ServerMessage::ToolResult { id: "c1", response: &bad, gates: Some(&gates) },
            json!({
                "type": "tool_result", "callId": "c1", "ok": false, "duration": 12, "error": shown,
                "gates": gates.explain(),
            }),
        ),
        (
            ServerMessage::ConfirmationRequest { id: "c1", request: &request.unwrap() },
            json!({
                "type": "confirmation_request", "callId": "c1", "token": "cnf_1", "tool": "probe", "args": args,
                "preview": "Do it?", "expires": 5,
            }),
        ),
        (
            ServerMessage::ConfirmationRequest { id: "c2", request: &reasoned.unwrap() },
            json!({
                "type": "confirmation_request", "callId": "c2", "token": "cnf_2", "tool": "probe", "args": args,
                "preview": "Do it?", "reason": "It is a lot.", "expires": 5,
            }),
        ),
        (
            ServerMessage::ConfirmationRequest { id: "c3", request: &with_code.unwrap() },
            json!({
                "type": "confirmation_request", "callId": "c3", "token": "cnf_3", "tool": "probe", "args": args,
                "preview": "Do it?", "expires": 5, "confirmBy": "code", "code": "4170",
            }),
        ),
        (
            ServerMessage::Progress { id: "c1", text: "Looking." },
            json!({ "type": "progress", "callId": "c1", "text": "Looking." }),
        ),
        (ServerMessage::Pause, json!({ "type": "pause" })),
        (ServerMessage::Resume, json!({ "type": "resume" })),
        (ServerMessage::Interrupted, json!({ "type": "interrupted" })),
        (ServerMessage::TurnComplete, json!({ "type": "turn_complete" })),
        (
            ServerMessage::Blocked(&block),
            json!({
                "type": "timeout", "durationSeconds": 60, "timeoutUntil": 1_059_001,
                "farewellMessage": "Please calm down.",
            }),
        ),
        (
            ServerMessage::End(&end),
            json!({
                "type": "session_end", "reason": "goal_achieved", "closingMessage": "Bye.", "textResponse": null,
            }),
        ),
        (ServerMessage::Error(&failed), json!({ "type": "error", "error": shown })),
        (ServerMessage::GoingAway { in_ms: 900 }, json!({ "type": "going_away", "inMs": 900 })),
        (ServerMessage::Message(&args), args.clone()),
    ];
    for (message, json) in all {
        link.send(message.clone());
        drive(&mut link).await;
        assert_eq!(read(&mut page).await, (vec![json], None), "{message:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn closing_sends_a_reason_and_does_not_wait_for_ever() {
    for (reason, code) in [
        (CloseReason::Ended, 1000),
        (CloseReason::Stopping, 1001),
        (CloseReason::TakenOver, 4001),
        (CloseReason::Refused, 1008),
        (CloseReason::AtCapacity, 1013),
        (CloseReason::Idle, 4002),
        (CloseReason::Failed, 1011),
    ] {
        let (mut page, mut link) = link();
        link.send(ServerMessage::TurnComplete);
        let began = tokio::time::Instant::now();
        // The page reads but never closes its end.
        Box::new(link).close(reason).await;
        assert_eq!(began.elapsed(), CLOSE_TIMEOUT);
        assert_eq!(read(&mut page).await, (vec![json!({ "type": "turn_complete" })], Some(code)));
    }
}
