//! What a server's refusals become. The server is ours and answers every request alike.

use quarterdeck_contracts::{ErrorType, ToolError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::world::{Caller, calendars, config};

/// A server with one answer.
async fn answering(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = vec![0; 64 << 10];
                let _ = client.read(&mut request).await;
                let _ = client.write_all(answer.as_bytes()).await;
            });
        }
    });
    url
}

async fn refusal(answer: &'static str) -> ToolError {
    let ann = Caller::new(&calendars(config(answering(answer).await)), "ann", "1");
    ann.events("2026-01-13T00:00:00Z", "2026-01-14T00:00:00Z").await.unwrap_err().into()
}

#[tokio::test]
async fn refusals_keep_their_meaning() {
    let limited =
        refusal("HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .await;
    assert_eq!(
        (limited.kind, limited.retryable, limited.retry_after_ms),
        (ErrorType::RateLimit, true, Some(7_000))
    );
    let busy =
        refusal("HTTP/1.1 503 Busy\r\nRetry-After: 2\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .await;
    assert_eq!((busy.kind, busy.retryable, busy.retry_after_ms), (ErrorType::Transient, true, Some(2_000)));
    let broken = refusal("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
    assert_eq!((broken.kind, broken.retryable), (ErrorType::Transient, true));
    let forbidden = refusal("HTTP/1.1 403 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
    assert_eq!((forbidden.kind, forbidden.retryable), (ErrorType::Auth, false));
}

#[tokio::test]
async fn an_answer_that_cannot_be_understood_is_no_calendar() {
    let page =
        refusal("HTTP/1.1 207 OK\r\nContent-Length: 15\r\nConnection: close\r\n\r\n<html>hi</html>").await;
    assert_eq!((page.kind, page.retryable), (ErrorType::Transient, true));
    let elsewhere = "HTTP/1.1 301 Moved\r\nLocation: https://other.example/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let moved = refusal(elsewhere).await;
    assert!(moved.message.contains("another server"), "credentials go to no other server: {}", moved.message);
}

#[tokio::test]
async fn an_endless_answer_is_not_read_to_its_end() {
    // It announces 100 MB; what counts is how much is read.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = client.read(&mut [0; 4096]).await;
                let _ = client.write_all(b"HTTP/1.1 207 OK\r\nContent-Length: 100000000\r\n\r\n").await;
                let part = vec![b' '; 1 << 20];
                while client.write_all(&part).await.is_ok() {}
            });
        }
    });
    let ann = Caller::new(&calendars(config(url)), "ann", "1");
    let error = ann.events("2026-01-13T00:00:00Z", "2026-01-14T00:00:00Z").await.unwrap_err();
    assert!(error.message.contains("sent more than"), "{error}");
}
