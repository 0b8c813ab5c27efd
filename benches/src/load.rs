//! A client that follows many event streams at once and reports what they cost the server in CPU time.

use std::time::Instant;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What is requested.
pub(crate) enum Endpoint {
    /// A peer: `GET path?n=TOKENS`.
    Peer(String),
    /// Us: a message to the text agent, whose script says so many tokens.
    Ours,
}

/// Follows `streams` streams of `tokens` events each.
pub(crate) fn run(port: u16, streams: usize, tokens: usize, pid: u32, endpoint: &Endpoint) -> Value {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let request = match endpoint {
        Endpoint::Peer(path) => {
            format!(
                "GET {path}?n={tokens} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\naccept: text/event-stream\r\n\r\n"
            )
        }
        Endpoint::Ours => {
            let body = r#"{"message":"Go on."}"#;
            let length = body.len();
            format!(
                "POST /api/chat HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n\
                 content-length: {length}\r\n\r\n{body}"
            )
        }
    };
    runtime.block_on(async {
        let (began, cpu) = (Instant::now(), ticks(pid));
        let tasks: Vec<_> =
            (0..streams).map(|_| tokio::spawn(follow(port, request.clone(), tokens))).collect();
        let mut first_event_ms = Vec::new();
        for task in tasks {
            first_event_ms.push(task.await.expect("a stream"));
        }
        let seconds = began.elapsed().as_secs_f64();
        let cpu_seconds = (ticks(pid) - cpu) as f64 / 100.0;
        first_event_ms.sort_by(f64::total_cmp);
        let all = (streams * tokens) as f64;
        json!({
            "cpu_us_per_token": cpu_seconds / all * 1e6, "tokens_per_s": all / seconds,
            "first_p99_ms": first_event_ms[(first_event_ms.len() - 1) * 99 / 100], "seconds": seconds,
        })
    })
}

/// Reads until so many events have come; gives the time to the first in milliseconds.
async fn follow(port: u16, request: String, tokens: usize) -> f64 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("a connection");
    stream.set_nodelay(true).expect("no delay");
    let began = Instant::now();
    stream.write_all(request.as_bytes()).await.expect("a request");
    let mut buffer = vec![0_u8; 65_536];
    let (mut events, mut first, mut before) = (0, 0.0, 0_u8);
    while events < tokens {
        let read = stream.read(&mut buffer).await.expect("an answer");
        assert!(read > 0, "closed after {events} events: {}", String::from_utf8_lossy(&buffer[..400]));
        // An event ends in an empty line, which the framing of chunks never holds.
        for byte in &buffer[..read] {
            events += usize::from(*byte == b'\n' && before == b'\n');
            before = *byte;
        }
        if events > 0 && first == 0.0 {
            first = began.elapsed().as_secs_f64() * 1e3;
        }
    }
    first
}

/// Hundredths of a second that a process has computed.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<u64> = stat
        .rsplit(')')
        .next()
        .unwrap_or("")
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse().ok())
        .collect();
    fields.iter().sum()
}
