//! Servers that break off, refuse and talk nonsense.

use std::time::Duration;

use quarterdeck_contracts::ChatErrorKind;
use quarterdeck_transports::{Gemini, GeminiConfig, OpenAi, OpenAiConfig};
use serde_json::json;

use crate::client::{CALL, KEY, TEXT, ask, ask_by, fine, limits, ok};
use crate::server::{Act, Server, answer};

#[tokio::test]
async fn an_answer_that_stops_after_text_is_cut_and_not_retried() {
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
async fn an_answer_that_stops_before_any_event_is_retried() {
    let error = "data: {\"error\":{\"type\":\"server_error\",\"message\":\"oh\"}}\n\n";
    for act in [Act::Send(ok(CALL)), Act::Reset(Vec::new()), Act::Send(Vec::new()), Act::Send(ok(error))] {
        let (outcome, server) = ask_by(vec![act, fine()]).await;
        assert_eq!((outcome.text.as_str(), outcome.kind()), ("Aye", None));
        assert_eq!(server.requests().len(), 2);
    }
}

#[tokio::test]
async fn an_error_after_text_in_one_packet_keeps_the_text() {
    let error = "data: {\"error\":{\"type\":\"server_error\",\"message\":\"oh\"}}\n\n";
    let (outcome, server) = ask_by(vec![Act::Send(ok(&format!("{TEXT}{error}"))), fine()]).await;
    assert_eq!((outcome.text.as_str(), outcome.kind()), ("Aye", Some(ChatErrorKind::Overloaded)));
    assert_eq!((outcome.detail(), server.requests().len()), ("the provider broke off: oh", 1));
}

#[tokio::test]
async fn a_retry_after_over_the_limit_is_reported_at_once() {
    let body = r#"{"error":{"message":"Slow down","code":"rate_limit_exceeded"}}"#;
    let act = Act::Send(answer("429 Too Many Requests", "retry-after: 3600\r\nx-request-id: r-7\r\n", body));
    let (outcome, server) = ask_by(vec![act, fine()]).await;
    assert_eq!(outcome.kind(), Some(ChatErrorKind::RateLimited));
    assert_eq!(outcome.detail(), "HTTP 429 Too Many Requests: Slow down (request r-7)");
    assert_eq!(outcome.error.unwrap().retry_after, Some(Duration::from_secs(3_600)));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_retry_delay_in_gemini_s_body_counts_as_well() {
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
async fn a_short_retry_after_is_waited_for() {
    let busy =
        Act::Send(answer("429 Too Many Requests", "retry-after-ms: 150\r\nretry-after: 3600\r\n", "{}"));
    let (outcome, server) = ask_by(vec![busy, fine()]).await;
    assert_eq!((outcome.text.as_str(), outcome.kind(), server.requests().len()), ("Aye", None, 2));
    assert!(outcome.took >= Duration::from_millis(150));
}

#[tokio::test]
async fn an_overloaded_server_gets_three_attempts_in_all() {
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
async fn an_error_that_is_not_retryable_gets_one_attempt() {
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
async fn a_body_that_is_no_stream_is_reported_as_garbled() {
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
async fn an_address_without_a_server_is_unreachable() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let config = OpenAiConfig::compatible(format!("http://127.0.0.1:{free}"), "m");
    let model = OpenAi::new(OpenAiConfig { limits: limits(), ..config }).unwrap();
    let outcome = ask(&model).await;
    assert_eq!(outcome.kind(), Some(ChatErrorKind::Unreachable));
    assert!(outcome.detail().starts_with("no connection"), "{}", outcome.detail());
}
