//! `POST /api/chat`: what the AI SDK's `useChat` posts, or a plain `{ "message": "…" }`.

use std::sync::Arc;
use std::time::Instant;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use quarterdeck_agents::text::{Address, ConfirmationReply, Message, Reader};
use quarterdeck_contracts::sha256;
use serde_json::{Value, json};

use super::openapi::{Operation, event_stream, ui};
use crate::app::App;
use crate::caller::{Caller, situation};
use crate::error::ApiError;
use crate::input::{self, Id};
use crate::places::Place;
use crate::stream::{self, ui::UiMessage};

/// The longest message that is taken, in characters.
pub(super) const LONGEST: usize = 100_000;

/// What a request wants.
#[derive(Debug, PartialEq)]
enum Wish {
    Say { id: Option<String>, text: String },
    Regenerate,
    Decide(Vec<ConfirmationReply>),
}

/// Whose conversation it is about.
#[derive(Debug, PartialEq)]
enum To {
    New,
    Chat(String),
    Session(String),
}

pub(super) async fn post(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let body = input::json(&app, body).await?;
    let (to, wish) = understand(&body)?;
    app.admit_writing(&caller.client.id)?;
    app.clients
        .take(&caller.client.id, Instant::now())
        .map_err(|wait| ApiError::rate_limited("You write faster than we can read.", wait.as_secs() + 1))?;
    let permit = app.admit_stream(&caller.client.id, &caller.source)?;
    let visitor = caller.visitor(situation(&headers, Some(&body)));
    let to = match &to {
        To::New => Address::New,
        To::Chat(id) => Address::Chat(id),
        To::Session(id) => Address::Session(id),
    };
    let reader = match wish {
        Wish::Say { id, text } => {
            let idempotency_key = idempotency_key(&headers)?;
            // A page that edits a message sends other words under the same id, which is another message.
            let id = id.map(|id| format!("{id}:{}", short_hash(&text)));
            app.text.send_message(&visitor, to, Message { id, idempotency_key, text }).await?
        }
        Wish::Regenerate => app.text.regenerate(&visitor, to).await?,
        Wish::Decide(decisions) => app.text.resolve_confirmations(&visitor, to, decisions).await?,
    };
    Ok(as_stream(reader, Some(permit)))
}

/// `GET /api/chat/{id}/stream`: the answer that is being written, from its start.
pub(super) async fn resume(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Id(id): Id,
) -> Result<Response, ApiError> {
    let visitor = caller.visitor(situation(&headers, None));
    let permit = app.admit_stream(&caller.client.id, &caller.source)?;
    match app.text.follow(&visitor, Address::Chat(&id)).await? {
        Some(reader) => Ok(as_stream(reader, Some(permit))),
        None => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

fn as_stream(reader: Reader, permit: Option<Place>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (HeaderName::from_static("x-vercel-ai-ui-message-stream"), HeaderValue::from_static("v1")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, stream::body(reader, UiMessage::default(), permit)).into_response()
}

/// What a body means. Of a client's history only the last message is believed.
fn understand(body: &Value) -> Result<(To, Wish), ApiError> {
    let Some(fields) = body.as_object() else {
        return Err(ApiError::validation("The body must be a JSON object."));
    };
    let to = match (text_field(body, "sessionId")?, text_field(body, "id")?) {
        (Some(session), _) => To::Session(session),
        (None, Some(chat)) => To::Chat(chat),
        (None, None) => To::New,
    };
    if !fields.contains_key("messages") {
        let Some(text) = text_field(body, "message")? else {
            return Err(ApiError::validation(
                "`message` is missing: send { \"message\": \"…\" }, or what the AI SDK's `useChat` posts.",
            ));
        };
        return Ok((to, Wish::Say { id: None, text: checked(text)? }));
    }
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let Some(last) = messages.last() else {
        return Err(ApiError::validation("`messages` must be a list with at least one message."));
    };
    if !messages.iter().all(|message| message["role"].is_string()) {
        return Err(ApiError::validation("Every one of `messages` must be an object with a `role`."));
    }
    if body["trigger"] == "regenerate-message" {
        return Ok((to, Wish::Regenerate));
    }
    match last["role"].as_str() {
        Some("user") => {
            let id = last["id"].as_str().map(str::to_owned);
            Ok((to, Wish::Say { id, text: checked(words_of(last))? }))
        }
        Some("assistant") => {
            let decisions = decisions_in(last);
            if decisions.is_empty() {
                return Err(ApiError::validation(
                    "The last message is the assistant's and answers no question.",
                ));
            }
            Ok((to, Wish::Decide(decisions)))
        }
        _ => Err(ApiError::validation("The last message must have the role `user` or `assistant`.")),
    }
}

fn text_field(body: &Value, name: &str) -> Result<Option<String>, ApiError> {
    match &body[name] {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        _ => Err(ApiError::validation(format!("`{name}` must be a string."))),
    }
}

fn checked(text: String) -> Result<String, ApiError> {
    if text.trim().is_empty() {
        return Err(ApiError::validation("The message is empty."));
    }
    if text.chars().count() > LONGEST {
        let message = format!("The message is too long; {LONGEST} characters are the most.");
        return Err(ApiError::validation(message));
    }
    Ok(text)
}

/// The words of a message. What is attached is named, since nobody here can look at it.
fn words_of(message: &Value) -> String {
    if let Some(content) = message["content"].as_str() {
        return content.to_owned();
    }
    let parts = message["parts"].as_array().map_or(&[][..], Vec::as_slice);
    let words = parts.iter().filter_map(|part| match part["type"].as_str()? {
        "text" => part["text"].as_str().map(str::to_owned),
        "file" => {
            let name = part["filename"].as_str().unwrap_or("without a name");
            Some(format!("[A file was attached that cannot be read here: {name}]"))
        }
        _ => None,
    });
    words.collect::<Vec<_>>().join("\n")
}

/// The answers to questions that a message holds.
fn decisions_in(message: &Value) -> Vec<ConfirmationReply> {
    let parts = message["parts"].as_array().map_or(&[][..], Vec::as_slice);
    let responded = parts.iter().filter(|part| part["state"] == "approval-responded");
    let decisions = responded.filter_map(|part| {
        let approval = &part["approval"];
        Some(ConfirmationReply {
            token: approval["id"].as_str()?.to_owned(),
            is_approved: approval["approved"].as_bool()?,
        })
    });
    decisions.collect()
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    let is_key =
        |key: &&str| (1..=200).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
    let key = key.to_str().ok().filter(is_key);
    match key {
        Some(key) => Ok(Some(format!("key:{key}"))),
        None => Err(ApiError::validation("An `Idempotency-Key` has 1 to 200 visible characters.")),
    }
}

fn short_hash(text: &str) -> String {
    sha256(text.as_bytes())[..12].to_owned()
}

pub(super) fn described() -> Operation {
    let plain = json!({ "message": "What can you do?" });
    let words = json!([{ "type": "text", "text": "What can you do?" }]);
    let posted = json!({
        "id": "chat1", "trigger": "submit-message", "messages": [{ "id": "m1", "role": "user", "parts": words }],
    });
    Operation::new("sendMessage", "chat", "Say something to the agent")
        .about(
            "Answers as the agent speaks, in the AI SDK's UI message stream protocol: a page that uses `useChat` needs \
             nothing but this URL. A second delivery under the same `Idempotency-Key`, or of the same message, joins the \
             answer of the first. Closing the connection aborts the answer.",
        )
        .may_take(
            "header",
            "Idempotency-Key",
            json!({ "type": "string", "minLength": 1, "maxLength": 200 }),
            "What makes two requests the same one. 1 to 200 visible ASCII characters.",
            "b7c1",
        )
        .takes_body("ChatRequest", &[("plain", plain), ("useChat", posted)])
        .gives(200, "The answer, as it is written.", event_stream("UiStreamPart", ui::STREAM))
        .refuses(&[404, 409, 410])
}

pub(super) fn resume_described() -> Operation {
    Operation::new("resumeAnswer", "chat", "Follow an answer that is being written")
        .about("From its start, in the same form as `POST /api/chat`.")
        .takes_id("The client's own name for the conversation, or its session.", "chat1")
        .gives(200, "The answer, as it is written.", event_stream("UiStreamPart", ui::STREAM))
        .gives(204, "Nothing is being written.", Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(body: Value) -> Result<(To, Wish), String> {
        understand(&body).map_err(|error| error.message)
    }

    #[test]
    fn a_plain_message_and_what_use_chat_posts_are_understood() {
        let say = |id: Option<&str>, text: &str| Wish::Say { id: id.map(str::to_owned), text: text.into() };
        assert_eq!(wish(json!({ "message": "hi" })), Ok((To::New, say(None, "hi"))));
        assert_eq!(
            wish(json!({ "message": "hi", "sessionId": "ses_1", "other": 1 })),
            Ok((To::Session("ses_1".into()), say(None, "hi")))
        );
        let posted = json!({
            "id": "chat1", "trigger": "submit-message", "agent": "ops",
            "messages": [
                { "id": "a", "role": "user", "parts": [{ "type": "text", "text": "old" }] },
                { "id": "b", "role": "user", "parts": [
                    { "type": "file", "mediaType": "image/png", "url": "data:,", "filename": "a.png" },
                    { "type": "text", "text": "what is this?" },
                ] },
            ],
        });
        let text = "[A file was attached that cannot be read here: a.png]\nwhat is this?";
        assert_eq!(wish(posted), Ok((To::Chat("chat1".into()), say(Some("b"), text))));
    }

    #[test]
    fn approvals_are_read_from_the_last_message_only() {
        let part = |state: &str| json!({ "type": "dynamic-tool", "toolCallId": "c", "state": state, "approval": { "id": "t", "approved": true } });
        let body = |last: Value| {
            json!({ "id": "chat1", "messages": [
                { "id": "m", "role": "assistant", "parts": [part("approval-responded")] },
                { "id": "n", "role": "assistant", "parts": [last] },
            ] })
        };
        let decision = ConfirmationReply { token: "t".into(), is_approved: true };
        assert_eq!(
            wish(body(part("approval-responded"))),
            Ok((To::Chat("chat1".into()), Wish::Decide(vec![decision])))
        );
        assert_eq!(
            wish(body(part("approval-requested"))),
            Err("The last message is the assistant's and answers no question.".into())
        );
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        assert!(wish(json!([])).unwrap_err().contains("object"));
        assert!(wish(json!({})).unwrap_err().contains("`message` is missing"));
        assert!(wish(json!({ "message": 1 })).unwrap_err().contains("`message` must be a string"));
        assert!(wish(json!({ "message": "  " })).unwrap_err().contains("empty"));
        assert!(wish(json!({ "messages": [] })).unwrap_err().contains("at least one"));
        assert!(wish(json!({ "messages": [{ "role": "system" }] })).unwrap_err().contains("role"));
        assert!(wish(json!({ "messages": [5, { "role": "user" }] })).unwrap_err().contains("an object"));
        assert!(wish(json!({ "id": 4, "message": "hi" })).unwrap_err().contains("`id`"));
        assert!(wish(json!({ "message": "x".repeat(LONGEST + 1) })).unwrap_err().contains("too long"));
    }
}
