//! Servers that stall or never stop, and callers that drop the stream.

use std::time::Duration;

use futures_util::StreamExt;
use quarterdeck_contracts::{ChatErrorKind, ChatModel};
use quarterdeck_transports::Limits;

use crate::client::{CALL, END, TEXT, ask, ask_by, ask_within, impatient, limits, ok, openai_with, question};
use crate::server::{Act, Server, answer, head};

#[tokio::test]
async fn a_stalled_answer_times_out_wherever_it_stalls() {
    for (act, text) in [
        (Act::SendAndHang(Vec::new()), ""),
        (Act::SendAndHang(ok("")), ""),
        (Act::SendAndHang(ok(TEXT)), "Aye"),
        (Act::SendAndHang(ok(CALL)), ""),
    ] {
        let (outcome, server) = ask_within(impatient(), vec![act]).await;
        assert_eq!((outcome.text.as_str(), outcome.kind()), (text, Some(ChatErrorKind::Silent)));
        assert_eq!(outcome.detail(), "nothing came for 300ms");
        assert_eq!(server.requests().len(), 1, "a timeout is not retried");
        assert!(server.is_disconnected().await);
    }
}

#[tokio::test]
async fn keep_alives_without_end_do_not_keep_an_answer_alive() {
    let script = vec![Act::Endlessly(ok(TEXT), b": ping\n\n".to_vec(), Duration::from_millis(20))];
    let server = Server::start(script).await;
    let limits = Limits { total: Duration::from_millis(700), ..limits() };
    let outcome = ask(&openai_with(&server, limits)).await;
    assert_eq!((outcome.text.as_str(), outcome.kind()), ("Aye", Some(ChatErrorKind::Silent)));
    assert_eq!(outcome.detail(), "the answer was not complete after 700ms");
    assert!(outcome.took < Duration::from_secs(10));
}

#[tokio::test]
async fn endless_bodies_are_not_read_to_their_end() {
    let pause = Duration::ZERO;
    let limits = || Limits { response: 1 << 20, event: 100 << 10, ..limits() };
    let text = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[]}}]}\n\n".repeat(100).into_bytes();
    for (act, kind) in [
        (Act::Endlessly(ok(""), text, pause), ChatErrorKind::Garbled),
        (Act::Endlessly(ok("data: "), vec![b'x'; 9_999], pause), ChatErrorKind::Garbled),
        (
            Act::Endlessly(head("400 Bad Request", "").into(), vec![b'x'; 9_999], pause),
            ChatErrorKind::Rejected,
        ),
    ] {
        let server = Server::start(vec![act]).await;
        let outcome = ask(&openai_with(&server, limits())).await;
        assert_eq!(outcome.kind(), Some(kind));
        assert!(outcome.detail().len() < 1_000 && outcome.took < Duration::from_secs(10));
        assert!(server.is_disconnected().await);
    }
}

#[tokio::test]
async fn a_complete_answer_is_not_kept_waiting_by_a_connection_that_stays_open() {
    let finished = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let (outcome, _) =
        ask_within(impatient(), vec![Act::SendAndHang(ok(&format!("{TEXT}{finished}")))]).await;
    assert_eq!((outcome.text.as_str(), outcome.kind()), ("Aye", None));
    let (outcome, _) = ask_by(vec![Act::SendAndHang(ok(&format!("{TEXT}{END}")))]).await;
    assert_eq!((outcome.text.as_str(), outcome.kind()), ("Aye", None));
    assert!(outcome.took < Duration::from_secs(2), "[DONE] is the end");
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection_at_once() {
    for act in [Act::SendAndHang(ok(TEXT)), Act::SendAndHang(Vec::new())] {
        let server = Server::start(vec![act]).await;
        let long = Duration::from_secs(60);
        let model = openai_with(&server, Limits { first_byte: long, idle: long, ..limits() });
        let mut stream = model.ask(question());
        let _ = tokio::time::timeout(Duration::from_millis(300), async {
            while stream.next().await.is_some() {}
        })
        .await;
        assert_eq!(server.requests().len(), 1);
        drop(stream);
        assert!(server.is_disconnected().await);
    }
}

#[tokio::test]
async fn dropping_the_stream_ends_a_retry_delay_and_nothing_more_is_sent() {
    let server =
        Server::start(vec![Act::Send(answer("429 Too Many Requests", "retry-after-ms: 400\r\n", "{}"))])
            .await;
    let model = openai_with(&server, limits());
    let mut stream = model.ask(question());
    let _ = tokio::time::timeout(Duration::from_millis(200), stream.next()).await;
    drop(stream);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(server.requests().len(), 1);
}
