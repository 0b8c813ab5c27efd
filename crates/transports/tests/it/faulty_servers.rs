//! Servers that answer well, badly, late and not at all: each comes to the right end, in bounded time.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use quarterdeck_contracts::{ChatError, ChatErrorKind, ChatEvent, ChatModel, ChatRequest};
use quarterdeck_transports::anthropic::KeyHeader;
use quarterdeck_transports::{
    Anthropic, AnthropicConfig, ConfigError, Gemini, GeminiConfig, Limits, OpenAi, OpenAiConfig,
};
use serde_json::json;

use crate::server::{Act, Server, answer, head};
use crate::world::{person, request};

const KEY: &str = "sk-this-is-the-key";
const TEXT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Aye\"}}]}\n\n";
const CALL: &str = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"tide\"}}]}}]}\n\n";
const END: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// Patient enough for a busy machine.
fn limits() -> Limits {
    Limits {
        first_byte: Duration::from_secs(20),
        idle: Duration::from_secs(20),
        backoff: Duration::from_millis(5),
        longest_pause: Duration::from_secs(5),
        ..Limits::default()
    }
}

/// For servers that fall silent.
fn impatient() -> Limits {
    let soon = Duration::from_millis(300);
    Limits { first_byte: soon, idle: soon, ..limits() }
}

fn openai_with(server: &Server, limits: Limits) -> OpenAi {
    let base_url = format!("{}/v1", server.url());
    OpenAi::new(OpenAiConfig { base_url, limits, ..OpenAiConfig::new(KEY, "m") }).unwrap()
}

fn question() -> ChatRequest {
    request("Be brief.", vec![person("Ready?")], Vec::new())
}

struct Outcome {
    text: String,
    error: Option<ChatError>,
    took: Duration,
}

impl Outcome {
    fn kind(&self) -> Option<ChatErrorKind> {
        self.error.as_ref().map(|error| error.kind)
    }

    fn detail(&self) -> &str {
        self.error.as_ref().map_or("", |error| &error.detail)
    }
}

async fn ask(model: &impl ChatModel) -> Outcome {
    let began = Instant::now();
    let (mut text, mut error, mut done) = (String::new(), None, false);
    let mut stream = model.ask(question());
    while let Some(event) = stream.next().await {
        assert!(!done && error.is_none(), "nothing follows the end");
        match event {
            Ok(ChatEvent::Text(more)) => text.push_str(&more),
            Ok(ChatEvent::Thought(_)) => {}
            Ok(ChatEvent::Done(reply)) => {
                assert_eq!(reply.message.text(), text);
                assert_eq!(reply.message.by, model.name());
                done = true;
            }
            Err(failed) => error = Some(failed),
        }
    }
    assert!(done != error.is_some(), "one end or the other");
    let said = format!("{error:?} {}", error.as_ref().map(ToString::to_string).unwrap_or_default());
    assert!(!said.contains(KEY), "the key is in {said}");
    Outcome { text, error, took: began.elapsed() }
}

/// Asks a server that follows this script.
async fn ask_by(script: Vec<Act>) -> (Outcome, Server) {
    ask_within(limits(), script).await
}

async fn ask_within(limits: Limits, script: Vec<Act>) -> (Outcome, Server) {
    let server = Server::start(script).await;
    let outcome = ask(&openai_with(&server, limits)).await;
    assert!(outcome.took < Duration::from_secs(10), "it took {:?}", outcome.took);
    (outcome, server)
}

fn ok(body: &str) -> Vec<u8> {
    format!("{}{body}", head("200 OK", "")).into_bytes()
}

fn fine() -> Act {
    Act::Send(ok(&format!("{TEXT}{END}")))
}

#[tokio::test]
async fn a_chat_completions_server_is_asked_at_its_path_with_its_headers() {
    let (outcome, server) = ask_by(vec![fine()]).await;
    assert_eq!((outcome.text.as_str(), outcome.kind()), ("Aye", None));
    let requests = server.requests();
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("authorization: Bearer {KEY}\r\n")), "{head}");
    assert!(head.contains("content-type: application/json"), "{head}");
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["messages"][1], json!({ "role": "user", "content": "Ready?" }));
}

#[tokio::test]
async fn a_compatible_server_gets_no_key_where_there_is_none() {
    let server = Server::start(vec![fine()]).await;
    let config =
        OpenAiConfig { limits: limits(), ..OpenAiConfig::compatible(format!("{}/v1/", server.url()), "m") };
    assert_eq!(ask(&OpenAi::new(config).unwrap()).await.kind(), None);
    let requests = server.requests();
    assert!(requests[0].starts_with("POST /v1/chat/completions ") && !requests[0].contains("authorization"));
}

#[tokio::test]
async fn gemini_is_asked_at_its_path_with_its_headers() {
    let chunk = json!({"candidates": [{"content": {"parts": [{"text": "Aye"}]}, "finishReason": "STOP"}]});
    let server = Server::start(vec![Act::Send(ok(&format!("data: {chunk}\r\n\r\n")))]).await;
    for model in ["gemini-3.8-flash", "models/gemini-3.8-flash"] {
        let base = GeminiConfig { base_url: server.url(), limits: limits(), ..GeminiConfig::new(KEY) };
        let gemini = Gemini::new(GeminiConfig { model: model.to_owned(), ..base }).unwrap();
        assert_eq!((gemini.name(), gemini.window()), ("gemini/gemini-3.8-flash", 1_048_576));
        let outcome = ask(&gemini).await;
        assert_eq!((outcome.text.as_str(), outcome.kind()), ("Aye", None));
    }
    for request in server.requests() {
        let path = "POST /v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse HTTP/1.1\r\n";
        assert!(request.starts_with(path), "{request}");
        assert!(request.contains(&format!("x-goog-api-key: {KEY}\r\n")), "{request}");
    }
}

#[tokio::test]
async fn anthropic_is_asked_at_its_path_with_either_header() {
    let stream = "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\",\"text\":\"Aye\"}}\n\n\
                  data: {\"type\":\"message_stop\"}\n\n";
    let server = Server::start(vec![Act::Send(ok(stream))]).await;
    for (key_header, expected) in [
        (KeyHeader::Bearer, format!("authorization: Bearer {KEY}")),
        (KeyHeader::XApiKey, format!("x-api-key: {KEY}")),
    ] {
        let base = AnthropicConfig { base_url: server.url(), limits: limits(), ..AnthropicConfig::new(KEY) };
        let anthropic = Anthropic::new(AnthropicConfig { key_header, ..base }).unwrap();
        let outcome = ask(&anthropic).await;
        assert_eq!((outcome.text.as_str(), outcome.kind()), ("Aye", None));
        let request = server.requests().pop().unwrap();
        assert!(request.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("anthropic-version: 2026-10-21\r\n"), "{request}");
        assert!(request.contains(&expected), "{request}");
        assert_eq!(request.contains("authorization"), key_header == KeyHeader::Bearer);
    }
}

#[tokio::test]
async fn an_answer_that_stops_after_words_is_cut_and_not_asked_for_again() {
    for act in [Act::Send(ok(TEXT)), Act::Reset(ok(TEXT))] {
        let (outcome, server) = ask_by(vec![act, fine()]).await;
        assert_eq!((outcome.text.as_str(), outcome.kind()), ("Aye", Some(ChatErrorKind::Cut)));
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn an_answer_of_a_known_length_that_stops_early_is_cut() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 5000\r\n\r\n";
    let (outcome, _) = ask_by(vec![Act::Send(format!("{head}{TEXT}").into_bytes())]).await;
    assert_eq!((outcome.text.as_str(), outcome.kind()), ("Aye", Some(ChatErrorKind::Cut)));
}

#[tokio::test]
async fn an_answer_that_stops_before_anybody_heard_anything_is_asked_for_again() {
    let error = "data: {\"error\":{\"type\":\"server_error\",\"message\":\"oh\"}}\n\n";
    for act in [Act::Send(ok(CALL)), Act::Reset(Vec::new()), Act::Send(Vec::new()), Act::Send(ok(error))] {
        let (outcome, server) = ask_by(vec![act, fine()]).await;
        assert_eq!((outcome.text.as_str(), outcome.kind()), ("Aye", None));
        assert_eq!(server.requests().len(), 2);
    }
}

#[tokio::test]
async fn an_error_behind_words_in_one_packet_leaves_the_words_heard() {
    let error = "data: {\"error\":{\"type\":\"server_error\",\"message\":\"oh\"}}\n\n";
    let (outcome, server) = ask_by(vec![Act::Send(ok(&format!("{TEXT}{error}"))), fine()]).await;
    assert_eq!((outcome.text.as_str(), outcome.kind()), ("Aye", Some(ChatErrorKind::Overloaded)));
    assert_eq!((outcome.detail(), server.requests().len()), ("the provider broke off: oh", 1));
}

#[tokio::test]
async fn too_long_a_pause_is_reported_and_not_waited_for() {
    let body = r#"{"error":{"message":"Slow down","code":"rate_limit_exceeded"}}"#;
    let act = Act::Send(answer("429 Too Many Requests", "retry-after: 3600\r\nx-request-id: r-7\r\n", body));
    let (outcome, server) = ask_by(vec![act, fine()]).await;
    assert_eq!(outcome.kind(), Some(ChatErrorKind::RateLimited));
    assert_eq!(outcome.detail(), "HTTP 429 Too Many Requests: Slow down (request r-7)");
    assert_eq!(outcome.error.unwrap().retry_after, Some(Duration::from_secs(3_600)));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_pause_in_gemini_s_body_counts_as_well() {
    let details = json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}]);
    let body = json!({"error": {"code": 429, "message": "Enough", "status": "RESOURCE_EXHAUSTED", "details": details}});
    let server = Server::start(vec![Act::Send(answer("429 Too Many Requests", "", &body.to_string()))]).await;
    let config = GeminiConfig { base_url: server.url(), limits: limits(), ..GeminiConfig::new(KEY) };
    let outcome = ask(&Gemini::new(config).unwrap()).await;
    assert_eq!(outcome.kind(), Some(ChatErrorKind::RateLimited));
    assert_eq!(outcome.error.unwrap().retry_after, Some(Duration::from_secs(17)));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_short_pause_is_waited_for() {
    let busy =
        Act::Send(answer("429 Too Many Requests", "retry-after-ms: 150\r\nretry-after: 3600\r\n", "{}"));
    let (outcome, server) = ask_by(vec![busy, fine()]).await;
    assert_eq!((outcome.text.as_str(), outcome.kind(), server.requests().len()), ("Aye", None, 2));
    assert!(outcome.took >= Duration::from_millis(150));
}

#[tokio::test]
async fn a_server_in_trouble_is_asked_three_times_in_all() {
    for status in
        ["500 Internal Server Error", "503 Service Unavailable", "529 Overloaded", "408 Request Timeout"]
    {
        let (outcome, server) = ask_by(vec![Act::Send(answer(status, "", "oops"))]).await;
        assert_eq!(
            (outcome.kind(), server.requests().len()),
            (Some(ChatErrorKind::Overloaded), 3),
            "{status}"
        );
    }
}

#[tokio::test]
async fn what_does_not_pass_is_asked_once() {
    let quota = r#"{"error":{"message":"Pay","code":"insufficient_quota"}}"#;
    let key = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}"}}}}"#);
    for (status, headers, body, kind) in [
        ("429 Too Many Requests", "", quota, ChatErrorKind::RateLimited),
        ("429 Too Many Requests", "x-should-retry: true\r\n", quota, ChatErrorKind::RateLimited),
        ("500 Internal Server Error", "x-should-retry: false\r\n", "", ChatErrorKind::Overloaded),
        ("401 Unauthorized", "", &key, ChatErrorKind::Unauthorised),
        ("404 Not Found", "", "no such model", ChatErrorKind::Rejected),
        ("400 Bad Request", "", r#"{"error":{"code":"context_length_exceeded"}}"#, ChatErrorKind::TooLong),
    ] {
        let (outcome, server) = ask_by(vec![Act::Send(answer(status, headers, body)), fine()]).await;
        assert_eq!((outcome.kind(), server.requests().len()), (Some(kind), 1), "{status} {body}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Server::start(vec![fine()]).await;
    let location = format!("location: {}/v1/chat/completions\r\n", elsewhere.url());
    for status in ["302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let (outcome, _) = ask_by(vec![Act::Send(answer(status, &location, ""))]).await;
        assert_eq!(outcome.kind(), Some(ChatErrorKind::Rejected));
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn garbage_is_called_so() {
    let page = answer("200 OK", "content-type: text/html\r\n", "<html><body>Welcome!</body></html>");
    let (outcome, _) = ask_by(vec![Act::Send(page)]).await;
    assert_eq!(outcome.kind(), Some(ChatErrorKind::Garbled));
    assert!(outcome.detail().contains("text/html"), "{}", outcome.detail());
    let (outcome, server) = ask_by(vec![Act::Send(ok("data: {\"choices\": oops}\n\n")), fine()]).await;
    assert_eq!((outcome.kind(), server.requests().len()), (Some(ChatErrorKind::Garbled), 1));
    let error = answer(
        "200 OK",
        "content-type: application/json\r\n",
        r#"{"error":{"message":"no","code":"invalid_api_key"}}"#,
    );
    assert_eq!(ask_by(vec![Act::Send(error)]).await.0.kind(), Some(ChatErrorKind::Unauthorised));
    let (outcome, _) = ask_by(vec![Act::Send(b"SSH-2.0-OpenSSH_9.9\r\n\r\n".to_vec())]).await;
    assert_eq!(outcome.kind(), Some(ChatErrorKind::Unreachable));
}

#[tokio::test]
async fn silence_is_noticed_wherever_it_begins() {
    for (act, text) in [
        (Act::SendAndHang(Vec::new()), ""),
        (Act::SendAndHang(ok("")), ""),
        (Act::SendAndHang(ok(TEXT)), "Aye"),
        (Act::SendAndHang(ok(CALL)), ""),
    ] {
        let (outcome, server) = ask_within(impatient(), vec![act]).await;
        assert_eq!((outcome.text.as_str(), outcome.kind()), (text, Some(ChatErrorKind::Silent)));
        assert_eq!(server.requests().len(), 1, "whoever has waited once need not wait again");
        assert!(server.is_hung_up_on().await);
    }
}

#[tokio::test]
async fn keep_alives_without_end_do_not_keep_an_answer_alive() {
    let script = vec![Act::Endlessly(ok(TEXT), b": ping\n\n".to_vec(), Duration::from_millis(20))];
    let server = Server::start(script).await;
    let limits = Limits { whole: Duration::from_millis(700), ..limits() };
    let outcome = ask(&openai_with(&server, limits)).await;
    assert_eq!((outcome.text.as_str(), outcome.kind()), ("Aye", Some(ChatErrorKind::Silent)));
    assert!(outcome.took < Duration::from_secs(10));
}

#[tokio::test]
async fn bodies_without_end_are_not_read_to_their_end() {
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
        assert!(server.is_hung_up_on().await);
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
async fn nobody_at_the_address_is_unreachable() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let config = OpenAiConfig::compatible(format!("http://127.0.0.1:{free}"), "m");
    let model = OpenAi::new(OpenAiConfig { limits: limits(), ..config }).unwrap();
    let outcome = ask(&model).await;
    assert_eq!(outcome.kind(), Some(ChatErrorKind::Unreachable));
    assert!(outcome.detail().starts_with("no connection"), "{}", outcome.detail());
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
        assert!(server.is_hung_up_on().await);
    }
}

#[tokio::test]
async fn dropping_the_stream_ends_a_pause_and_nothing_more_is_sent() {
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

#[tokio::test]
async fn the_next_question_uses_the_same_connection() {
    let body = format!("{TEXT}{END}");
    let chunked = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    let server = Server::start(vec![Act::SendAndKeep(chunked.into_bytes())]).await;
    let model = openai_with(&server, limits());
    for _ in 0..3 {
        assert_eq!(ask(&model).await.kind(), None);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!((server.requests().len(), server.connections()), (3, 1));
}

#[test]
fn settings_that_cannot_work_are_refused_before_anybody_asks() {
    assert!(matches!(Gemini::new(GeminiConfig::new(" ")), Err(ConfigError::NoKey { provider: "gemini" })));
    assert!(matches!(Anthropic::new(AnthropicConfig::new("")), Err(ConfigError::NoKey { .. })));
    let refused = OpenAi::new(OpenAiConfig::new("a\nb", "m")).err().unwrap();
    assert_eq!(refused.to_string(), "the key of openai has characters that cannot be sent in a header");
    let config = GeminiConfig { model: "../other".to_owned(), ..GeminiConfig::new(KEY) };
    assert!(matches!(Gemini::new(config), Err(ConfigError::Model { .. })));
    assert!(matches!(OpenAi::new(OpenAiConfig::new(KEY, "")), Err(ConfigError::Model { .. })));
    assert!(matches!(
        OpenAi::new(OpenAiConfig::compatible("localhost", "m")),
        Err(ConfigError::BaseUrl { .. })
    ));
    assert!(!format!("{:?}", GeminiConfig::new(KEY)).contains(KEY));
    assert!(!format!("{:?}", AnthropicConfig::new(KEY)).contains(KEY));
    assert!(!format!("{:?}", OpenAiConfig::new(KEY, "m")).contains(KEY));
}
