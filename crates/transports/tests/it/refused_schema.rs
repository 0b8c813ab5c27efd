//! Servers that refuse a declaration, with the words that llama.cpp's server used.

use futures_util::StreamExt;
use quarterdeck_contracts::{ChatError, ChatErrorKind, ChatEvent, ChatModel, ChatRequest, ContextOverflow};
use quarterdeck_transports::{OpenAi, OpenAiConfig};
use serde_json::{Value, json};

use crate::client::{fine, limits};
use crate::fixtures::{request, user};
use crate::server::{Act, Server, answer};

const PATTERN: &str = include_str!("../golden/openai/refused/llama-pattern.json");
const CONTEXT: &str = include_str!("../golden/openai/refused/llama-context.json");

#[tokio::test]
async fn a_request_that_is_refused_for_a_keyword_is_sent_again_without_it() {
    let refused = Act::Send(answer("400 Bad Request", "", PATTERN));
    let server = Server::start(vec![refused, fine()]).await;
    let model = model(&server);
    assert_eq!(ask(&model).await, Ok("Aye".to_owned()));
    assert_eq!(patterns(&server), [1, 0]);
    // What was learnt is kept, so the next request is not refused first.
    assert_eq!(ask(&model).await, Ok("Aye".to_owned()));
    assert_eq!(patterns(&server), [1, 0, 0]);
}

#[tokio::test]
async fn a_request_is_not_sent_a_third_time() {
    let refused = Act::Send(answer("400 Bad Request", "", PATTERN));
    let server = Server::start(vec![refused]).await;
    let error = ask(&model(&server)).await.unwrap_err();
    assert_eq!(error.kind, ChatErrorKind::Rejected);
    assert!(error.detail.contains("Pattern must start"), "{error}");
    assert_eq!(patterns(&server), [1, 0]);
}

#[tokio::test]
async fn a_context_that_is_too_small_is_told_with_its_numbers() {
    let server = Server::start(vec![Act::Send(answer("400 Bad Request", "", CONTEXT))]).await;
    let error = ask(&model(&server)).await.unwrap_err();
    assert_eq!(error.kind, ChatErrorKind::TooLong);
    let body: Value = serde_json::from_str(CONTEXT).unwrap();
    let counts = ContextOverflow {
        limit: body["error"]["n_ctx"].as_u64().unwrap(),
        sent: body["error"]["n_prompt_tokens"].as_u64(),
    };
    assert_eq!(error.context, Some(counts));
    assert_eq!(server.requests().len(), 1);
}

fn model(server: &Server) -> OpenAi {
    let base_url = format!("{}/v1", server.url());
    OpenAi::new(OpenAiConfig { limits: limits(), ..OpenAiConfig::compatible(base_url, "m") }).unwrap()
}

fn question() -> ChatRequest {
    let parameters =
        json!({ "type": "object", "properties": { "id": { "type": "string", "pattern": "^person:" } } });
    let tool = json!({ "type": "function", "function": { "name": "lookup", "parameters": parameters } });
    request("Be brief.", vec![user("Ready?")], vec![tool])
}

async fn ask(model: &OpenAi) -> Result<String, ChatError> {
    let mut stream = model.ask(question());
    let mut said = String::new();
    while let Some(event) = stream.next().await {
        if let ChatEvent::Text(text) = event? {
            said.push_str(&text);
        }
    }
    Ok(said)
}

/// How many patterns each request had.
fn patterns(server: &Server) -> Vec<usize> {
    server.requests().iter().map(|request| request.matches("\"pattern\"").count()).collect()
}
