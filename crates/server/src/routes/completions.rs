//! `POST /v1/chat/completions`: the agent behind the OpenAI API.
//!
//! The conversation is the client's in this protocol, and is told anew with each request. The tools run inside.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use quarterdeck_agents::text::{Address, Reader, Transcript};
use quarterdeck_agents::turn::text_message;
use quarterdeck_contracts::{ChatMessage, sha256};
use quarterdeck_runtime::random_hex;
use serde_json::{Value, json};

use super::models;
use super::openapi::{Operation, completions, event_stream, reference};
use crate::app::App;
use crate::caller::{Caller, situation};
use crate::error::ApiError;
use crate::input;
use crate::places::Place;
use crate::stream::openai::{Chunks, Head, Whole, error};
use crate::stream::{self, held_body};

pub(super) async fn post(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    match answer(&app, &caller, &headers, body).await {
        Ok(response) => response,
        Err(error) => error.openai(),
    }
}

async fn answer(app: &App, caller: &Caller, headers: &HeaderMap, body: Body) -> Result<Response, ApiError> {
    let body = input::json(app, body).await?;
    let model = models::check(app, &body["model"])?;
    let (before, text) = conversation(&body)?;
    app.admit_writing(&caller.client.id)?;
    app.clients
        .take(&caller.client.id, Instant::now())
        .map_err(|wait| ApiError::rate_limited("Too many messages.", wait.as_secs() + 1))?;
    let permit = app.admit_stream(&caller.client.id, &caller.source)?;
    let visitor = caller.visitor(situation(headers, Some(&body)));
    let transcript = Transcript {
        fingerprint: hash(&body.to_string()),
        is_retry: headers.get("x-stainless-retry-count").is_some_and(|count| count != "0"),
        before,
        text,
    };
    let chat = format!("v1:{}", beginning(&body));
    let mut reader = app.text.complete(&visitor, Address::Chat(&chat), transcript).await?;
    let head = head(model);
    if body["stream"] == true {
        let with_usage = body["stream_options"]["include_usage"] == true;
        let headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        ];
        return Ok(
            (headers, stream::body(reader, Chunks::new(head, with_usage), Some(permit))).into_response()
        );
    }
    whole(&mut reader, &head, permit).await
}

/// Waits for the whole answer, which holds its place until it is read.
async fn whole(reader: &mut Reader, head: &Head, permit: Place) -> Result<Response, ApiError> {
    let mut whole = Whole::default();
    while let Some(events) = reader.next().await {
        events.iter().for_each(|event| whole.add(event));
    }
    let (status, answer) = match &whole.failure {
        None => (StatusCode::OK, whole.completion(head)),
        // Clients send a request again after a 5xx, a 409 or a 429, and by now tools may have run.
        Some(failure) => (StatusCode::UNPROCESSABLE_ENTITY, json!({ "error": error(failure) })),
    };
    Ok(held_body::json(status, held_body::written(&answer)?, Some(permit)))
}

fn head(model: &str) -> Head {
    // An id that is not unlike others is a nuisance to whoever reads logs, nothing more.
    let id = random_hex(12).unwrap_or_default();
    let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Head { id: format!("chatcmpl-{id}").into(), created, model: model.into() }
}

/// The conversation that a client tells: what was said before, and what the person says now.
fn conversation(body: &Value) -> Result<(Vec<ChatMessage>, String), ApiError> {
    let missing = |message: &str| ApiError { param: Some("messages"), ..ApiError::validation(message) };
    let Some(messages) = body["messages"].as_array() else {
        return Err(missing("`messages` must be a list."));
    };
    let mut told = Vec::new();
    for message in messages {
        let text = text_of(&message["content"]);
        match message["role"].as_str() {
            Some("user") => told.push(ChatMessage::User { text }),
            // Instructions of a client are a person's: they do not become the site's own.
            Some("system" | "developer") if !text.is_empty() => {
                told.push(ChatMessage::User { text: format!("[The person's settings: {text}]") });
            }
            Some("assistant") if !text.is_empty() => told.push(ChatMessage::Model(text_message("", text))),
            // Calls and results of the client's own tools mean nothing here.
            Some("assistant" | "tool" | "function" | "system" | "developer") => {}
            _ => {
                return Err(missing(
                    "Every message needs a `role`: system, developer, user, assistant or tool.",
                ));
            }
        }
    }
    match told.pop() {
        Some(ChatMessage::User { text }) if !text.trim().is_empty() => Ok((told, text)),
        _ => Err(missing("The last message must be the person's, with some words.")),
    }
}

/// Text, or parts of which some are text.
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

/// What stays the same while a conversation goes on: how it began.
fn beginning(body: &Value) -> String {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let first = messages.iter().position(|message| message["role"] == "user").map_or(0, |place| place + 1);
    let opening: Vec<String> = messages[..first].iter().map(|message| text_of(&message["content"])).collect();
    hash(&opening.join("\n"))
}

fn hash(text: &str) -> String {
    sha256(text.as_bytes())[..32].to_owned()
}

pub(super) fn described() -> Operation {
    let hello =
        json!({ "model": models::AGENT, "messages": [{ "role": "user", "content": "What can you do?" }] });
    let mut streamed = hello.clone();
    streamed["stream"] = true.into();
    let whole = json!({ "schema": reference("schemas", "Completion"), "example": completions::example() });
    let mut content = event_stream("CompletionChunk", completions::STREAM);
    content["application/json"] = whole;
    Operation::new("createCompletion", "openai", "Ask the agent through the OpenAI API")
        .about(
            "The conversation is the client's and is told anew with each request. The agent's tools run inside and are \
             not shown as calls. Where a person has to approve, the agent asks in words and takes the answer in words.",
        )
        .takes_body("CompletionRequest", &[("whole", hello), ("streamed", streamed)])
        .gives(200, "The answer: whole, or as it is written when `stream` is true.", content)
        // A client sends its request again after a 409, a 429 or a 5xx; once tools may have run, it must not.
        .refuses(&[404, 409, 422])
}
