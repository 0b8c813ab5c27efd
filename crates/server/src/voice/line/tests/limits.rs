use quarterdeck_contracts::Speaker;

use super::*;

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
    assert_eq!(gone, Some(Disconnect::Rejected("too many messages that are wrong")));
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
    assert_eq!(send(1).await, Some(Disconnect::Rejected("too many frames")));
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
        assert_eq!(send(20).await, Some(Disconnect::Rejected("audio faster than anybody speaks")));
        assert_eq!(read(&mut page).await.1, Some(1008));
    }
}

#[tokio::test(start_paused = true)]
async fn texts_that_nobody_could_answer_are_not_passed_on() {
    let (mut page, mut line) = line();
    for _ in 0..21 {
        page.send_text(r#"{"type":"text","text":"hello"}"#);
    }
    page.flush().await.unwrap();
    let (asked, gone) = drive(&mut line).await;
    assert_eq!((asked.iter().filter(|asked| *asked == "Text(\"hello\")").count(), gone), (20, None));
    let message = "You ask faster than anybody can answer. Wait a moment.";
    assert_eq!(read(&mut page).await, (vec![error("RATE_LIMIT", message)], None));
    tokio::time::advance(Duration::from_secs(1)).await;
    page.send_text(r#"{"type":"text","text":"hello"}"#);
    page.flush().await.unwrap();
    assert_eq!(drive(&mut line).await.0, ["Text(\"hello\")"]);
}

#[tokio::test(start_paused = true)]
async fn large_messages_that_say_little_are_a_flood_too() {
    let (mut page, mut line) = line();
    let ping = json!({ "type": "ping", "with": "x".repeat(60_000) }).to_string();
    for _ in 0..6 {
        page.send_text(&ping);
    }
    page.flush().await.unwrap();
    assert_eq!(drive(&mut line).await.1, Some(Disconnect::Rejected("too many bytes")));
    assert_eq!(read(&mut page).await.1, Some(1008));
}

#[tokio::test]
async fn a_message_that_is_too_large_gets_a_typed_error_and_1009() {
    let (mut page, mut line) = line();
    page.send_text(&"x".repeat((64 << 10) + 1));
    page.flush().await.unwrap();
    assert_eq!(drive(&mut line).await.1, Some(Disconnect::Rejected("a message that is too large")));
    let message = "The connection is closed because of a message that is too large.";
    assert_eq!(read(&mut page).await, (vec![error("VALIDATION", message)], Some(1009)));
}

#[tokio::test]
async fn control_that_nobody_reads_does_not_pile_up() {
    let (page, ours) = duplex(1_000);
    let ties = Ties { resume_token: Box::new(str::to_owned), now_ms: Box::new(|| 0), _place: None };
    let mut line = BrowserLine::new(WebSocket::new(ours, Role::Server, LIMITS, &[]), ties);
    let words = "x".repeat(1_000);
    for _ in 0..10_000 {
        line.send(ServerMessage::Transcript {
            by: Speaker::Model,
            text: &words,
            is_final: true,
            is_late: false,
        });
        let _ = line.poll_flush(&mut Context::from_waker(Waker::noop()));
    }
    assert!(line.queued_bytes() < (256 << 10) + 3_000, "{}", line.queued_bytes());
    assert_eq!(drive(&mut line).await.1, Some(Disconnect::Rejected("messages that are not read")));
    drop(page);
}

#[tokio::test]
async fn audio_alone_is_nobodys_fault_and_can_be_thrown_away() {
    let (mut page, mut line) = line();
    for _ in 0..600 {
        line.send(ServerMessage::Audio(Audio::Pcm((&[0; 1_000][..]).into())));
    }
    line.send(ServerMessage::Interrupted);
    assert!(line.queued_bytes() > 600_000);
    assert_eq!(line.drop_audio(0), 600 * 1_004);
    assert_eq!(drive(&mut line).await.1, None);
    assert_eq!(read(&mut page).await, (vec![json!({ "type": "interrupted" })], None));
}

#[tokio::test]
async fn a_large_message_alone_is_not_held_against_a_page() {
    let (mut page, mut line) = line();
    let words = "x".repeat(400_000);
    line.send(ServerMessage::Transcript { by: Speaker::Model, text: &words, is_final: true, is_late: false });
    assert_eq!(drive(&mut line).await.1, None);
    assert_eq!(read(&mut page).await.0[0]["text"], words);
}
