use quarterdeck_contracts::Speaker;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_client_with_too_many_invalid_messages_is_rejected() {
    let (mut page, mut link) = link();
    for _ in 0..20 {
        page.send_text("nonsense");
    }
    page.flush().await.unwrap();
    assert_eq!(drive(&mut link).await.1, None);
    // Three seconds refill one error.
    tokio::time::advance(Duration::from_secs(3)).await;
    page.send_text("nonsense");
    page.flush().await.unwrap();
    assert_eq!(drive(&mut link).await.1, None);
    assert_eq!(read(&mut page).await.0.len(), 21);
    page.send_text("nonsense");
    page.send_text(r#"{"type":"text","text":"after"}"#);
    page.flush().await.unwrap();
    let (messages, disconnect) = drive(&mut link).await;
    assert_eq!(disconnect, Some(Disconnect::Rejected("too many invalid messages")));
    assert_eq!(messages, ["KeepAlive"], "later messages are ignored");
    let (read, closed) = read(&mut page).await;
    let message = "Connection closed: too many invalid messages.";
    assert_eq!((read, closed), (vec![error("RATE_LIMIT", message)], Some(1008)));
}

#[tokio::test(start_paused = true)]
async fn too_many_frames_are_rejected() {
    let (mut page, mut link) = link();
    let mut send = async |count: usize| {
        for _ in 0..count {
            send_bytes(&mut page, &[]);
        }
        page.flush().await.unwrap();
        drive(&mut link).await.1
    };
    assert_eq!(send(1_000).await, None);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(send(300).await, None);
    assert_eq!(send(1).await, Some(Disconnect::Rejected("too many frames")));
    let (read, closed) = read(&mut page).await;
    assert_eq!(read, [error("RATE_LIMIT", "Connection closed: too many frames.")]);
    assert_eq!(closed, Some(1008));
}

#[tokio::test(start_paused = true)]
async fn audio_faster_than_real_time_is_rejected_in_either_format() {
    let second = vec![0; 32_000];
    let as_text =
        format!(r#"{{"type":"audio","data":"{}"}}"#, base64_simd::STANDARD.encode_to_string(&second));
    for in_base64 in [false, true] {
        let (mut page, mut link) = link();
        let mut send = async |seconds: usize| {
            for _ in 0..seconds {
                if in_base64 {
                    page.send_text(&as_text);
                } else {
                    send_bytes(&mut page, &second);
                }
            }
            page.flush().await.unwrap();
            drive(&mut link).await.1
        };
        assert_eq!(send(9).await, None, "audio buffered while offline");
        for _ in 0..20 {
            tokio::time::advance(Duration::from_secs(1)).await;
            assert_eq!(send(1).await, None);
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(send(20).await, Some(Disconnect::Rejected("audio faster than real time")));
        assert_eq!(read(&mut page).await.1, Some(1008));
    }
}

#[tokio::test(start_paused = true)]
async fn texts_over_the_rate_limit_are_not_passed_on() {
    let (mut page, mut link) = link();
    for _ in 0..21 {
        page.send_text(r#"{"type":"text","text":"hello"}"#);
    }
    page.flush().await.unwrap();
    let (messages, disconnect) = drive(&mut link).await;
    assert_eq!(
        (messages.iter().filter(|message| *message == "Text(\"hello\")").count(), disconnect),
        (20, None)
    );
    let message = "Too many messages; wait 1 s.";
    assert_eq!(read(&mut page).await, (vec![error("RATE_LIMIT", message)], None));
    tokio::time::advance(Duration::from_secs(1)).await;
    page.send_text(r#"{"type":"text","text":"hello"}"#);
    page.flush().await.unwrap();
    assert_eq!(drive(&mut link).await.0, ["Text(\"hello\")"]);
}

#[tokio::test(start_paused = true)]
async fn large_pings_count_towards_the_byte_rate() {
    let (mut page, mut link) = link();
    let ping = json!({ "type": "ping", "with": "x".repeat(60_000) }).to_string();
    for _ in 0..6 {
        page.send_text(&ping);
    }
    page.flush().await.unwrap();
    assert_eq!(drive(&mut link).await.1, Some(Disconnect::Rejected("too many bytes")));
    assert_eq!(read(&mut page).await.1, Some(1008));
}

#[tokio::test]
async fn a_message_that_is_too_large_gets_a_typed_error_and_1009() {
    let (mut page, mut link) = link();
    page.send_text(&"x".repeat((64 << 10) + 1));
    page.flush().await.unwrap();
    assert_eq!(drive(&mut link).await.1, Some(Disconnect::Rejected("a message that is too large")));
    let message = "Connection closed: a message that is too large.";
    assert_eq!(read(&mut page).await, (vec![error("VALIDATION", message)], Some(1009)));
}

#[tokio::test]
async fn unread_control_messages_are_bounded() {
    let (page, ours) = duplex(1_000);
    let context = LinkContext {
        resume_token: Box::new(str::to_owned),
        now_ms: Box::new(|| 0),
        show: Shown::default(),
        line: RequestLine::default(),
        _permit: None,
    };
    let mut link = WebSocketLink::new(WebSocket::new(ours, Role::Server, LIMITS, &[]), context);
    let text = "x".repeat(1_000);
    for _ in 0..10_000 {
        link.send(ServerMessage::Transcript {
            by: Speaker::Model,
            text: &text,
            is_final: true,
            is_late: false,
        });
        let _ = link.poll_flush(&mut Context::from_waker(Waker::noop()));
    }
    assert!(link.queued_bytes() < (256 << 10) + 3_000, "{}", link.queued_bytes());
    assert_eq!(drive(&mut link).await.1, Some(Disconnect::Rejected("messages are not read")));
    drop(page);
}

#[tokio::test]
async fn unread_audio_is_not_rejected_and_can_be_dropped() {
    let (mut page, mut link) = link();
    for _ in 0..600 {
        link.send(ServerMessage::Audio(Audio::Pcm((&[0; 1_000][..]).into())));
    }
    link.send(ServerMessage::Interrupted);
    assert!(link.queued_bytes() > 600_000);
    assert_eq!(link.drop_audio(0), 600 * 1_004);
    assert_eq!(drive(&mut link).await.1, None);
    assert_eq!(read(&mut page).await, (vec![json!({ "type": "interrupted" })], None));
}

#[tokio::test]
async fn a_single_large_message_is_not_rejected() {
    let (mut page, mut link) = link();
    let text = "x".repeat(400_000);
    link.send(ServerMessage::Transcript { by: Speaker::Model, text: &text, is_final: true, is_late: false });
    assert_eq!(drive(&mut link).await.1, None);
    assert_eq!(read(&mut page).await.0[0]["text"], text);
}
