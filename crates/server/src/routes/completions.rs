//! `POST /v1/chat/completions`: the agent behind the OpenAI API.
//!
//! In this protocol the client holds the conversation and sends it with each request. The tools run inside.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use quarterdeck_agents::text::{Address, Reader, Transcript};
use quarterdeck_agents::turn::text_message;
use quarterdeck_contracts::{ChatMessage, sha256};
use quarterdeck_runtime::random_hex;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::models;
use super::openapi::{Media, Operation};
use crate::app::App;
use crate::caller::{Caller, situation};
use crate::error::ApiError;
use crate::input;
use crate::model_trouble::upstream_error;
use crate::quota::Permit;
use crate::request_log::{LoggedEncoder, RequestLog};
use crate::stream::openai::{ChunkEncoder, Completion, CompletionCollector, CompletionHead, StreamItem};
use crate::stream::opening::read_opening;
use crate::stream::{self, held_body};

/// An example of a stream.
const STREAM: &str = "\
data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,\"model\":\"quarterdeck\",\
\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n\
data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,\"model\":\"quarterdeck\",\
\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Good morning.\"},\"finish_reason\":null}]}\n\n\
data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,\"model\":\"quarterdeck\",\
\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
data: [DONE]\n\n";

/// Unknown fields are ignored, including the caller's own `tools`.
#[derive(JsonSchema)]
#[schemars(rename = "CompletionRequest")]
#[expect(dead_code, reason = "parsed leniently; only its schema is used")]
struct CompletionRequestShape {
    /// `quarterdeck`, or null.
    #[schemars(extend("examples" = ["quarterdeck"]))]
    model: Option<String>,
    /// The conversation. The last message is the user's.
    #[schemars(length(min = 1))]
    messages: Vec<RequestMessageShape>,
    /// `true` for server-sent events.
    #[schemars(default)]
    stream: Value,
    /// `{"include_usage":true}` for one more chunk with the usage.
    #[schemars(default)]
    stream_options: Value,
}

#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used")]
struct RequestMessageShape {
    #[schemars(extend("enum" = ["system", "developer", "user", "assistant", "tool", "function"]))]
    role: String,
    /// Text, or a list of parts with `text`.
    #[schemars(default)]
    content: Value,
}

pub(super) async fn post(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    log: RequestLog,
    headers: HeaderMap,
    body: Body,
) -> Response {
    match answer(&app, &caller, log, &headers, body).await {
        Ok(response) => response,
        Err(error) => error.openai(),
    }
}

async fn answer(
    app: &App,
    caller: &Caller,
    log: RequestLog,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let body = input::json(app, body).await?;
    let model = models::check(&body["model"])?;
    let (before, text) = conversation(&body)?;
    app.refuse_without_store()?;
    app.refuse_during_call(&caller.client.id).await?;
    app.count_message(caller).await?;
    let permit = app.admission.admit_stream(&caller.client.id, &caller.source)?;
    let user = caller.user(situation(headers, Some(&body)));
    let transcript = Transcript {
        fingerprint: hash(&body.to_string()),
        is_retry: headers.get("x-stainless-retry-count").is_some_and(|count| count != "0"),
        before,
        text,
    };
    let chat = format!("v1:{}", conversation_key(&body));
    let mut reader = app.text.complete(&user, Address::Chat(&chat), transcript).await?;
    let head = head(model, app.orchestrator.now_ms());
    if body["stream"] == true {
        let with_usage = body["stream_options"]["include_usage"] == true;
        let headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        ];
        let mut encoder = LoggedEncoder { log, encoder: ChunkEncoder::new(head, with_usage) };
        let opening = read_opening(&mut reader, &mut encoder).await;
        let opening = opening.map_err(|failure| upstream_error(&failure, false))?;
        return Ok((headers, stream::body_after(opening, reader, encoder, Some(permit), &app.frames))
            .into_response());
    }
    collect(&mut reader, &log, &head, permit).await
}

/// Waits for the whole answer, which holds its permit until it is sent.
async fn collect(
    reader: &mut Reader,
    log: &RequestLog,
    head: &CompletionHead,
    permit: Permit,
) -> Result<Response, ApiError> {
    let mut collector = CompletionCollector::default();
    while let Some(events) = reader.next().await {
        for event in &events {
            log.see(event);
            collector.add(event);
        }
    }
    if let Some(failure) = &collector.failure {
        return Err(upstream_error(failure, collector.has_called));
    }
    let answer = json!(collector.completion(head));
    Ok(held_body::json(StatusCode::OK, held_body::to_json_bytes(&answer)?, Some(permit)))
}

fn head(model: &str, now_ms: u64) -> CompletionHead {
    // A duplicate id is harmless.
    let id = random_hex(12).unwrap_or_default();
    CompletionHead { id: format!("chatcmpl-{id}").into(), created: now_ms / 1_000, model: model.into() }
}

/// The earlier messages and the user's new one.
fn conversation(body: &Value) -> Result<(Vec<ChatMessage>, String), ApiError> {
    let invalid = |message: &str| ApiError { param: Some("messages"), ..ApiError::validation(message) };
    let Some(messages) = body["messages"].as_array() else {
        return Err(invalid("`messages` must be a list."));
    };
    let mut history = Vec::new();
    for message in messages {
        let text = text_of(&message["content"]);
        match message["role"].as_str() {
            Some("user") => history.push(ChatMessage::User { text }),
            // A client's instructions rank as the user's, not as the operator's.
            Some("system" | "developer") if !text.is_empty() => {
                history.push(ChatMessage::User { text: format!("[The user's settings: {text}]") });
            }
            Some("assistant") if !text.is_empty() => history.push(ChatMessage::Model(text_message("", text))),
            // The client's own tools are ignored.
            Some("assistant" | "tool" | "function" | "system" | "developer") => {}
            _ => {
                return Err(invalid(
                    "Every message needs a `role`: system, developer, user, assistant or tool.",
                ));
            }
        }
    }
    match history.pop() {
        Some(ChatMessage::User { text }) if !text.trim().is_empty() => Ok((history, text)),
        _ => Err(invalid("The last message must have the role `user` and a text.")),
    }
}

/// A string, or the text parts of a list.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Identifies a conversation by its messages up to the first of the user.
fn conversation_key(body: &Value) -> String {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let first = messages.iter().position(|message| message["role"] == "user").map_or(0, |place| place + 1);
    let first_texts: Vec<String> =
        messages[..first].iter().map(|message| text_of(&message["content"])).collect();
    hash(&first_texts.join("\n"))
}

fn hash(text: &str) -> String {
    sha256(text.as_bytes())[..32].to_owned()
}

pub(super) fn describe() -> Operation {
    let hello =
        json!({ "model": models::AGENT, "messages": [{ "role": "user", "content": "What can you do?" }] });
    let mut streamed = hello.clone();
    streamed["stream"] = true.into();
    let completion = Media::new::<Completion<'_>>("application/json").example(example());
    let content = vec![Media::events::<StreamItem<'_>>(STREAM), completion];
    Operation::new("createCompletion", "openai", "Chat through the OpenAI API")
        .description(
            "The client sends the whole conversation with each request. The agent's tools run inside and are not shown \
             as calls. Where approval is needed, the agent asks for it in the text and reads the answer from the text.",
        )
        .body::<CompletionRequestShape>(&[("whole", hello), ("streamed", streamed)])
        .response(200, "The answer, streamed if `stream` is true.", content)
        // Clients retry after 409, 429 and 5xx, unless `x-should-retry` says that tools have run.
        .errors(&[404, 409, 502])
}

fn example() -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1_760_000_000, "model": "quarterdeck",
        "choices": [{
            "index": 0, "message": { "role": "assistant", "content": "Good morning." }, "finish_reason": "stop",
            "logprobs": null,
        }],
        "usage": {
            "prompt_tokens": 812, "completion_tokens": 4, "total_tokens": 816,
            "prompt_tokens_details": { "cached_tokens": 768 },
        },
    })
}
