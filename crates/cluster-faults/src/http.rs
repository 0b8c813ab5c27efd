//! As much of an HTTP server as a stand-in needs: a body in, an answer out, connections kept.

use std::future::Future;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

pub(crate) struct Answer {
    kind: &'static str,
    body: String,
}

impl Answer {
    pub(crate) fn json(value: &Value) -> Self {
        Self { kind: "application/json", body: value.to_string() }
    }

    pub(crate) fn events(body: String) -> Self {
        Self { kind: "text/event-stream", body }
    }
}

/// Serves on a free port of this machine until the task is aborted.
pub(crate) async fn serve<H, F>(handler: H) -> (SocketAddr, JoinHandle<()>)
where
    H: Fn(Vec<u8>) -> F + Clone + Send + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(converse(stream, handler.clone()));
            while connections.try_join_next().is_some() {}
        }
    });
    (address, serving)
}

async fn converse<H, F>(mut stream: TcpStream, handler: H)
where
    H: Fn(Vec<u8>) -> F,
    F: Future<Output = Answer>,
{
    let mut arrived = Vec::new();
    while let Some(body) = next_body(&mut stream, &mut arrived).await {
        let Answer { kind, body } = handler(body).await;
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", body.len());
        if stream.write_all(format!("{head}{body}").as_bytes()).await.is_err() {
            return;
        }
    }
}

/// The body of the next request; nothing when the client has gone.
async fn next_body(stream: &mut TcpStream, arrived: &mut Vec<u8>) -> Option<Vec<u8>> {
    loop {
        if let Some((head, whole)) = bounds(arrived).filter(|(_, whole)| arrived.len() >= *whole) {
            let body = arrived[head..whole].to_vec();
            arrived.drain(..whole);
            return Some(body);
        }
        let mut piece = [0; 16 << 10];
        let count = stream.read(&mut piece).await.ok().filter(|count| *count > 0)?;
        arrived.extend_from_slice(&piece[..count]);
    }
}

/// Where the head of the first request ends, and where the request does.
fn bounds(arrived: &[u8]) -> Option<(usize, usize)> {
    let head = arrived.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&arrived[..head]).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.map_or(0, |length| length.trim().parse().unwrap_or(0));
    Some((head, head + length))
}
