//! The request of each provider, and settings that are refused before the first one.

use std::time::Duration;

use quarterdeck_contracts::ChatModel;
use quarterdeck_transports::anthropic::KeyHeader;
use quarterdeck_transports::{
    Anthropic, AnthropicConfig, ConfigError, Gemini, GeminiConfig, OpenAi, OpenAiConfig,
};
use serde_json::json;

use crate::client::{END, KEY, TEXT, ask, ask_by, fine, limits, ok, openai_with};
use crate::server::{Act, Server};

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
fn settings_that_cannot_work_are_refused_before_the_first_request() {
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
