//! Sizes and rates.

use quarterdeck_server::Settings;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::http::Open;
use crate::world::World;

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let world = World::with(Settings { max_body_bytes: 1_000, ..Settings::default() }).await;
    let body = json!({ "message": "x".repeat(1_000) });
    let answer = world.post("/api/chat", &body).send().await;
    assert_eq!(
        answer.refusal(),
        (413, "VALIDATION".into(), "The body is too large; send at most 1000 bytes.".into())
    );
    let answer = world.post("/v1/chat/completions", &body).send().await;
    assert_eq!(answer.refusal().1, "invalid_request_error");
}

#[tokio::test]
async fn json_that_is_nested_too_deeply_is_refused() {
    let world = World::new().await;
    for deep in [format!("{}{}", "[".repeat(65), "]".repeat(65)), "[".repeat(500_000)] {
        let answer = world.ask("POST", "/api/chat").body(deep).send().await;
        assert_eq!(answer.refusal().0, 400);
        assert!(answer.refusal().2.contains("at most 64 levels"));
    }
}

#[tokio::test]
async fn a_client_over_its_message_rate_gets_retry_after() {
    let world = World::with(Settings { messages_per_minute: 1, ..Settings::default() }).await;
    let cookie = world.new_client().await;
    let hello = json!({ "message": "hello" });
    let say = || world.post("/api/chat", &hello).with("cookie", &cookie).send();
    assert_eq!(say().await.status, 200);
    let refused = say().await;
    assert_eq!((refused.refusal().0, refused.refusal().1), (429, "RATE_LIMIT".into()));
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=61).contains(&wait), "{wait}");
    assert_eq!(refused.json()["error"]["retryable"], true);
    let body = json!({ "messages": [{ "role": "user", "content": "hello" }] });
    let openai = world.post("/v1/chat/completions", &body).with("cookie", &cookie).send().await;
    assert_eq!((openai.refusal().0, openai.refusal().1), (429, "rate_limit_error".into()));
    assert!(openai.header("retry-after").is_some());
}

#[tokio::test]
async fn an_address_over_its_request_rate_is_refused() {
    let settings = Settings { requests_per_minute: 2, trust_proxy: true, ..Settings::default() };
    let world = World::with(settings).await;
    let ask = |from: &'static str| world.get("/healthz").with("x-forwarded-for", from).send();
    assert_eq!(ask("203.0.113.7").await.status, 200);
    // Only what our proxy has seen counts, not the client's claim.
    assert_eq!(ask("198.51.100.1, 203.0.113.7").await.status, 200);
    let refused = ask("203.0.113.7").await;
    assert_eq!(refused.refusal().0, 429);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(ask("203.0.113.8").await.status, 200, "another address");
}

#[tokio::test]
async fn concurrent_answers_of_a_client_are_limited() {
    let world = World::with(Settings { streams_per_client: 1, ..Settings::default() }).await;
    let cookie = world.new_client().await;
    let say = |text: &str| world.post("/api/chat", &json!({ "message": text })).with("cookie", &cookie);
    let mut first = say("wait").open().await;
    first.until("You said").await;
    assert_eq!(say("hello").send().await.refusal().0, 429);
    world.resume.add_permits(1);
    assert!(first.rest().await.text().ends_with("data: [DONE]\n\n"));
    assert_eq!(say("hello").send().await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_arrive_times_out() {
    let world = World::new().await;
    let mut bytes = world.post("/api/chat", &json!({ "message": "hello" })).bytes();
    bytes.truncate(bytes.len() - 5);
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    stream.write_all(&bytes).await.unwrap();
    let answer = Open::read(stream).await.rest().await;
    assert_eq!((answer.refusal().0, answer.refusal().1), (408, "TRANSIENT".into()));
}
