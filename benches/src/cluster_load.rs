//! Clients that chat with several nodes, for `scripts/bench-cluster`.
//!
//! usage: `quarterdeck-benches cluster-load PORTS CLIENTS SECONDS TURNS_PER_CHAT`
//!
//! Each client sends its next message when the answer to the last one is complete, to the next of the nodes, as a load
//! balancer without sticky sessions would have it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What ends an answer: the last event, and the last chunk of the body.
const END_OF_ANSWER: &[u8] = b"\r\n0\r\n\r\n";
const DONE: &str = "data: [DONE]";

/// What one client has seen.
#[derive(Default)]
struct Seen {
    milliseconds: Vec<f64>,
    /// Answers that were no answer, by status.
    refused: BTreeMap<String, u32>,
}

/// Chats for so many seconds, and gives the rate and times of whole turns.
pub(crate) fn run(ports: &[u16], clients: usize, seconds: f64, turns_per_chat: usize) -> Value {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let began = Instant::now();
        let until = began + Duration::from_secs_f64(seconds);
        let tasks: Vec<_> = (0..clients)
            .map(|number| tokio::spawn(chat(ports.to_vec(), number, until, turns_per_chat)))
            .collect();
        let mut all = Seen::default();
        for task in tasks {
            let Seen { milliseconds, refused } = task.await.expect("a client");
            all.milliseconds.extend(milliseconds);
            for (status, count) in refused {
                *all.refused.entry(status).or_default() += count;
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        all.milliseconds.sort_by(f64::total_cmp);
        let last = all.milliseconds.len().saturating_sub(1);
        let at = |percent: usize| all.milliseconds.get(last * percent / 100).copied().unwrap_or(0.0);
        json!({
            "turns": all.milliseconds.len(), "turns_per_s": all.milliseconds.len() as f64 / seconds,
            "p50_ms": at(50), "p95_ms": at(95), "p99_ms": at(99), "refused": all.refused,
        })
    })
}

async fn chat(ports: Vec<u16>, number: usize, until: Instant, turns_per_chat: usize) -> Seen {
    let mut client = Client { cookie: None, connections: ports.iter().map(|_| None).collect(), ports };
    let mut seen = Seen::default();
    let run = std::process::id();
    for turn in 0.. {
        if Instant::now() >= until {
            break;
        }
        let chat = turn / turns_per_chat;
        let body = json!({ "message": "Where was the Fram built?", "id": format!("c{run}-{number}-{chat}") });
        let began = Instant::now();
        match client.send((number + turn) % client.ports.len(), &body.to_string()).await {
            Ok(()) => seen.milliseconds.push(began.elapsed().as_secs_f64() * 1e3),
            Err(status) => {
                *seen.refused.entry(status).or_default() += 1;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    seen
}

struct Client {
    ports: Vec<u16>,
    /// One for each node, kept open.
    connections: Vec<Option<TcpStream>>,
    cookie: Option<String>,
}

impl Client {
    /// One turn, to its end. The error is the status, or that the connection was lost.
    async fn send(&mut self, node: usize, body: &str) -> Result<(), String> {
        let port = self.ports[node];
        let cookie = self.cookie.as_ref().map(|cookie| format!("cookie: {cookie}\r\n")).unwrap_or_default();
        let request = format!(
            "POST /api/chat HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n{cookie}\
             content-length: {}\r\n\r\n{body}",
            body.len(),
        );
        let lost = |_| "lost".to_owned();
        let mut stream = match self.connections[node].take() {
            Some(stream) => stream,
            None => TcpStream::connect(("127.0.0.1", port)).await.map_err(lost)?,
        };
        stream.set_nodelay(true).map_err(lost)?;
        stream.write_all(request.as_bytes()).await.map_err(lost)?;
        let mut answer = Vec::new();
        while !answer.ends_with(END_OF_ANSWER) {
            if stream.read_buf(&mut answer).await.map_err(lost)? == 0 {
                return Err("lost".to_owned());
            }
            let is_refused = !answer.starts_with(b"HTTP/1.1 200") && answer.len() > 12;
            if is_refused {
                return Err(String::from_utf8_lossy(&answer[9..12]).into_owned());
            }
        }
        let text = String::from_utf8_lossy(&answer);
        if let Some(cookie) = text.lines().find_map(|line| line.strip_prefix("set-cookie: ")) {
            self.cookie = cookie.split(';').next().map(str::to_owned);
        }
        if !text.contains(DONE) || text.contains("\"type\":\"error\"") {
            return Err("failed".to_owned());
        }
        self.connections[node] = Some(stream);
        Ok(())
    }
}
