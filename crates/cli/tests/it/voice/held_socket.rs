//! A restart while another process holds the listening socket, as systemd does: nothing is refused and nothing is lost.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::page::Page;
use super::provider::Provider;
use super::server::{Server, Site, TIMEOUT};

const STREAMS: usize = 100;
const CALLS: usize = 50;
/// The last words of an answer, which come a second and a half after the first.
const WORDS: usize = 30;
const WORD_INTERVAL_MS: usize = 50;

/// Every conversation books a room and says so, slowly.
fn script(site: &Site, text: &Value) -> String {
    let call = json!({ "name": "book", "arguments": { "what": "room" } });
    let replies = json!([{ "calls": [call] }, text]);
    let path = site.tools.join("_script.json");
    let script = json!({ "replies": replies, "order": "conversation", "atEnd": "again" });
    std::fs::write(&path, script.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn words() -> Vec<String> {
    (0..WORDS).map(|number| format!("word{number} ")).collect()
}

/// A client of many in the tests is at the same address.
fn site(provider: &str) -> Site {
    let mut site = Site::new(provider);
    for limit in ["CONNECTIONS_PER_ADDRESS", "REQUESTS_PER_MINUTE_ADDRESS", "REQUESTS_PER_MINUTE_CLIENT"] {
        site.set(&format!("QUARTERDECK_LIMITS__{limit}"), "100000");
    }
    site
}

/// Sends a message and reads its answer to the end. A connection that is refused or cut is an error of the test.
async fn ask(address: SocketAddr, cookie: &str, body: &Value) -> Vec<Value> {
    let mut stream = TcpStream::connect(address).await.expect("no connection is refused");
    let (body, length) = (body.to_string(), body.to_string().len());
    let head =
        format!("POST /api/chat HTTP/1.0\r\nhost: {address}\r\ncookie: {cookie}\r\ncontent-length: {length}");
    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await.expect("the request is taken");
    let mut answer = String::new();
    let read = tokio::time::timeout(TIMEOUT, stream.read_to_string(&mut answer)).await;
    read.expect("the answer ends").expect("the connection is not cut");
    assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
    answer.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect()
}

fn text_of(parts: &[Value]) -> String {
    let deltas = parts.iter().filter(|part| part["type"] == "text-delta");
    deltas.filter_map(|part| part["delta"].as_str()).collect()
}

/// Asks in one conversation after the other until a turn was begun after the restart. Returns how many were answered, and
/// the longest one: an answer takes a second and a half, and what is longer is the pause.
async fn keep_asking(address: SocketAddr, cookie: String, is_over: Arc<AtomicBool>) -> (u64, Duration) {
    let (mut answered, mut longest) = (0, Duration::ZERO);
    loop {
        let is_last = is_over.load(Ordering::Relaxed);
        let begun = Instant::now();
        let parts = ask(address, &cookie, &json!({ "message": "Book the room" })).await;
        longest = longest.max(begun.elapsed());
        answered += 1;
        assert_eq!(text_of(&parts), words().concat(), "{parts:#?}");
        let results = parts.iter().filter(|part| part["type"] == "tool-output-available");
        assert_eq!(results.count(), 1, "{parts:#?}");
        assert_eq!(parts.last().unwrap()["type"], "finish", "{parts:#?}");
        if is_last {
            return (answered, longest);
        }
    }
}

/// Holds a call over the restart. Returns how long it had no server.
async fn hold_call(address: SocketAddr, cookie: String, number: usize) -> Duration {
    let mut page = Page::dial(address, cookie, json!({})).await;
    page.exchange(&format!("Hello {number}"), "Hello.").await;
    page.send(&json!({ "type": "playback", "state": "drained" })).await;
    page.wait_for("going_away").await;
    page.read_to_end().await;
    let begun = Instant::now();
    let (cookie, start) = page.disconnect();
    let mut page = Page::dial(address, cookie, start).await;
    let pause = begun.elapsed();
    assert_eq!(page.ready["resumed"], true, "{}", page.ready);
    page.exchange("Many thanks", "You are welcome.").await;
    pause
}

fn percentile(mut times: Vec<Duration>, percent: usize) -> Duration {
    times.sort();
    times[(times.len() - 1) * percent / 100]
}

async fn stop(server: Server) -> String {
    server.request_stop();
    tokio::task::spawn_blocking(move || server.wait_until_stopped()).await.unwrap()
}

#[expect(clippy::print_stderr, reason = "the pause is reported")]
#[tokio::test(flavor = "multi_thread")]
async fn a_restart_under_load_loses_no_stream_and_no_call() {
    let turns = json!([
        { "begins": "text", "containing": "Hello", "steps": [{ "say": "Hello." }] },
        { "begins": "text", "containing": "thank", "steps": [{ "say": "You are welcome." }] },
    ]);
    let provider = Provider::with_turns(&turns).await;
    let site = site(&provider.address);
    let script = script(&site, &json!({ "text": words(), "everyMs": WORD_INTERVAL_MS }));
    let options = ["--rehearsal-script", &script];
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = site.serve_on(&socket, &options);
    let address = server.address;
    assert_eq!(address, socket.local_addr().unwrap());

    let is_over = Arc::new(AtomicBool::new(false));
    let (mut streams, mut calls) = (JoinSet::new(), JoinSet::new());
    for number in 0..CALLS {
        calls.spawn(hold_call(address, server.new_cookie(), number));
    }
    for _ in 0..STREAMS {
        streams.spawn(keep_asking(address, server.new_cookie(), is_over.clone()));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // In the middle of answers.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let begun = Instant::now();
    let printed = stop(server).await;
    let stopped = begun.elapsed();
    assert!(!printed.contains("still open"), "{printed}");
    let server = site.serve_on(&socket, &options);
    let restarted = begun.elapsed();
    is_over.store(true, Ordering::Relaxed);

    let pauses = calls.join_all().await;
    let asked = streams.join_all().await;
    let answered: u64 = asked.iter().map(|(answered, _)| answered).sum();
    let answer = Duration::from_millis((WORDS * WORD_INTERVAL_MS) as u64);
    let waits: Vec<_> = asked.iter().map(|(_, longest)| longest.saturating_sub(answer)).collect();
    eprintln!(
        "restart: stopped after {stopped:?}, serving after {restarted:?}; {answered} answers of {STREAMS} clients, wait p50 \
         {:?}, p95 {:?}; {CALLS} calls, pause p50 {:?}, p95 {:?}",
        percentile(waits.clone(), 50),
        percentile(waits, 95),
        percentile(pauses.clone(), 50),
        percentile(pauses, 95),
    );
    stop(server).await;
    assert_eq!(site.stored_count("book").await, answered, "every booking was made once");
    assert_eq!(site.trail("session_resumed").len(), CALLS);
    assert_eq!(provider.report().faults, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_outlasts_the_drain_is_stored_and_its_reader_told_to_ask_again() {
    let mut site = site("");
    site.set("QUARTERDECK_SERVER__DRAIN_SECONDS", "2");
    let endless = json!({ "repeat": { "text": "more ", "times": 1_000, "everyMs": 50 } });
    let script = script(&site, &endless);
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = site.serve_on(&socket, &["--rehearsal-script", &script]);
    let (address, cookie) = (server.address, server.new_cookie());
    let message = json!({ "id": "chat", "message": "Book the room" });
    let asking = tokio::spawn({
        let cookie = cookie.clone();
        async move { ask(address, &cookie, &message).await }
    });
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let printed = stop(server).await;
    assert!(!printed.contains("still open"), "{printed}");
    let parts = asking.await.unwrap();
    let error = parts.iter().find(|part| part["type"] == "error").unwrap_or_else(|| panic!("{parts:#?}"));
    assert!(error.to_string().contains("The server is restarting"), "{error}");
    let said = text_of(&parts);
    assert!(said.len() > 50, "{said}");

    let server = site.serve_on(&socket, &["--rehearsal-script", &script]);
    let stored = get(server.address, &cookie, "/api/sessions/chat").await;
    assert!(stored.contains(said.trim_end()), "what was said is stored: {stored}");
    assert!(!stored.contains(&format!("{said}more more")), "and nothing else: {stored}");
    drop(server);
    assert_eq!(site.stored_count("book").await, 1);
}

async fn get(address: SocketAddr, cookie: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.0\r\nhost: {address}\r\ncookie: {cookie}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
