//! `POST /api/chat`: what the AI SDK's `useChat` posts, or a plain `{ "message": "…" }`.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use quarterdeck_agents::text::{Address, ConfirmationReply, Message, Reader};
use quarterdeck_contracts::sha256;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::openapi::schemas::one_of;
use super::openapi::{Media, Operation};
use crate::app::App;
use crate::caller::{Caller, situation};
use crate::error::ApiError;
use crate::file_link::FileLinks;
use crate::input::{self, Id};
use crate::quota::Permit;
use crate::request_log::{LoggedEncoder, RequestLog};
use crate::stream;
use crate::stream::shown::ShownEncoder;
use crate::stream::ui::{StreamPart, UiMessageEncoder};

const MAX_MESSAGE_CHARS: usize = 100_000;

/// An example of a stream.
const STREAM: &str = "\
data: {\"type\":\"start\",\"messageId\":\"msg_1\",\"messageMetadata\":{\"sessionId\":\"ses_1\"}}\n\n\
data: {\"type\":\"start-step\"}\n\n\
data: {\"type\":\"text-start\",\"id\":\"t1\"}\n\n\
data: {\"type\":\"text-delta\",\"id\":\"t1\",\"delta\":\"Good morning.\"}\n\n\
data: {\"type\":\"text-end\",\"id\":\"t1\"}\n\n\
data: {\"type\":\"finish-step\"}\n\n\
data: {\"type\":\"finish\",\"finishReason\":\"stop\",\"messageMetadata\":{\"usage\":\
{\"inputTokens\":812,\"outputTokens\":4,\"totalTokens\":816,\"cachedInputTokens\":768}}}\n\n\
data: [DONE]\n\n";

/// Unknown fields are ignored.
#[derive(JsonSchema)]
#[schemars(rename = "ChatRequest", untagged, rename_all_fields = "camelCase", transform = one_of)]
#[expect(dead_code, reason = "parsed leniently; only its schema is used")]
enum ChatRequestShape {
    #[schemars(title = "Plain", extend("not" = { "required": ["messages"] }))]
    Plain {
        /// The user's message, not blank.
        #[schemars(length(min = 1, max = MAX_MESSAGE_CHARS))]
        message: String,
        #[schemars(flatten)]
        context: ContextShape,
    },
    /// The AI SDK's `useChat` format. The last message is the user's, or the assistant's with the user's answers to
    /// confirmations.
    #[schemars(title = "useChat")]
    UseChat {
        /// The conversation as the page has it. Only the last message is read; the server keeps the history.
        #[schemars(length(min = 1))]
        messages: Vec<PostedMessageShape>,
        #[schemars(default, extend("examples" = ["submit-message", "regenerate-message"]))]
        trigger: Value,
        message_id: Option<String>,
        #[schemars(flatten)]
        context: ContextShape,
    },
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
struct ContextShape {
    /// The client's own id of the conversation.
    id: Option<String>,
    /// The session id from an earlier answer. It takes precedence over `id`.
    session_id: Option<String>,
    /// The user's time zone, an IANA name.
    #[schemars(default)]
    time_zone: Value,
    /// The user's language, a BCP 47 tag.
    #[schemars(default)]
    locale: Value,
}

/// A `UiMessage` as the page has it. Fields that are ignored are not validated, so this is looser.
#[derive(JsonSchema)]
#[schemars(rename = "PostedMessage")]
#[expect(dead_code, reason = "only its schema is used")]
struct PostedMessageShape {
    /// The page's id of the message.
    #[schemars(default)]
    id: Value,
    #[schemars(extend("examples" = ["user", "assistant"]))]
    role: String,
    /// A list of `UiMessagePart`. Read are the text of `text` parts and the `approval` of parts with the state
    /// `approval-responded`.
    #[schemars(default)]
    parts: Value,
}

#[derive(Debug, PartialEq)]
enum ChatAction {
    Send { id: Option<String>, text: String },
    Regenerate,
    Decide(Vec<ConfirmationReply>),
}

#[derive(Debug, PartialEq)]
enum Target {
    New,
    Chat(String),
    Session(String),
}

pub(super) async fn post(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    log: RequestLog,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let body = input::json(&app, body).await?;
    let (target, action) = parse_body(&body)?;
    app.refuse_without_store()?;
    app.refuse_during_call(&caller.client.id).await?;
    app.count_message(&caller).await?;
    let permit = app.admission.admit_stream(&caller.client.id, &caller.source)?;
    let user = caller.user(situation(&headers, Some(&body)));
    let address = match &target {
        Target::New => Address::New,
        Target::Chat(id) => Address::Chat(id),
        Target::Session(id) => Address::Session(id),
    };
    let reader = match action {
        ChatAction::Send { id, text } => {
            let idempotency_key = idempotency_key(&headers)?;
            // An edited message keeps its id but is another message.
            let id = id.map(|id| format!("{id}:{}", short_hash(&text)));
            app.text.send_message(&user, address, Message { id, idempotency_key, text }).await?
        }
        ChatAction::Regenerate => app.text.regenerate(&user, address).await?,
        ChatAction::Decide(replies) => app.text.resolve_confirmations(&user, address, replies).await?,
    };
    Ok(stream_response(app, &caller, log, reader, permit))
}

/// `GET /api/chat/{id}/stream`: the current answer from its start.
pub(super) async fn resume(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    log: RequestLog,
    headers: HeaderMap,
    Id(id): Id,
) -> Result<Response, ApiError> {
    let user = caller.user(situation(&headers, None));
    let permit = app.admission.admit_stream(&caller.client.id, &caller.source)?;
    match app.text.follow(&user, Address::Chat(&id)).await? {
        Some(reader) => Ok(stream_response(app, &caller, log, reader, permit)),
        None => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

fn stream_response(
    app: Arc<App>,
    caller: &Caller,
    log: RequestLog,
    reader: Reader,
    permit: Permit,
) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (HeaderName::from_static("x-vercel-ai-ui-message-stream"), HeaderValue::from_static("v1")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    // The stream itself says which session it belongs to.
    let tokens = caller.session_tokens(&app);
    let show = app.settings.page.load().show;
    let clock = app.frames.clone();
    let encoder = UiMessageEncoder::new(FileLinks::new(app, ""), tokens);
    let body = match show.is_all() {
        true => stream::body(reader, LoggedEncoder { log, encoder }, Some(permit), &clock),
        false => {
            let encoder = ShownEncoder::new(encoder, show);
            stream::body(reader, LoggedEncoder { log, encoder }, Some(permit), &clock)
        }
    };
    (headers, body).into_response()
}

/// Of a client's history only the last message counts.
fn parse_body(body: &Value) -> Result<(Target, ChatAction), ApiError> {
    let Some(fields) = body.as_object() else {
        return Err(ApiError::validation("The body must be a JSON object."));
    };
    let target = match (text_field(body, "sessionId")?, text_field(body, "id")?) {
        (Some(session), _) => Target::Session(session),
        (None, Some(chat)) => Target::Chat(chat),
        (None, None) => Target::New,
    };
    if !fields.contains_key("messages") {
        let Some(text) = text_field(body, "message")? else {
            return Err(ApiError::validation(
                "`message` is missing: send { \"message\": \"…\" }, or the AI SDK's `useChat` format.",
            ));
        };
        return Ok((target, ChatAction::Send { id: None, text: check_text(text)? }));
    }
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let Some(last) = messages.last() else {
        return Err(ApiError::validation("`messages` must be a list with at least one message."));
    };
    if !messages.iter().all(|message| message["role"].is_string()) {
        return Err(ApiError::validation("Each of `messages` must be an object with a `role`."));
    }
    if body["trigger"] == "regenerate-message" {
        return Ok((target, ChatAction::Regenerate));
    }
    match last["role"].as_str() {
        Some("user") => {
            let id = last["id"].as_str().map(str::to_owned);
            Ok((target, ChatAction::Send { id, text: check_text(message_text(last))? }))
        }
        Some("assistant") => {
            let replies = confirmation_replies(last);
            if replies.is_empty() {
                return Err(ApiError::validation(
                    "The last message is the assistant's and answers no confirmation.",
                ));
            }
            Ok((target, ChatAction::Decide(replies)))
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

fn check_text(text: String) -> Result<String, ApiError> {
    if text.trim().is_empty() {
        return Err(ApiError::validation("The message is empty."));
    }
    if text.chars().count() > MAX_MESSAGE_CHARS {
        let message = format!("The message is too long; send at most {MAX_MESSAGE_CHARS} characters.");
        return Err(ApiError::validation(message));
    }
    Ok(text)
}

/// The text of a message. Attached files are named, because they cannot be read.
fn message_text(message: &Value) -> String {
    if let Some(content) = message["content"].as_str() {
        return content.to_owned();
    }
    let parts = message["parts"].as_array().map_or(&[][..], Vec::as_slice);
    let texts = parts.iter().filter_map(|part| match part["type"].as_str()? {
        "text" => part["text"].as_str().map(str::to_owned),
        "file" => {
            let name = part["filename"].as_str().unwrap_or("unnamed");
            Some(format!("[An attached file cannot be read: {name}]"))
        }
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The user's answers to confirmations in a message.
fn confirmation_replies(message: &Value) -> Vec<ConfirmationReply> {
    let parts = message["parts"].as_array().map_or(&[][..], Vec::as_slice);
    let responded = parts.iter().filter(|part| part["state"] == "approval-responded");
    let replies = responded.filter_map(|part| {
        let approval = &part["approval"];
        Some(ConfirmationReply {
            token: approval["id"].as_str()?.to_owned(),
            is_approved: approval["approved"].as_bool()?,
        })
    });
    replies.collect()
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    let is_key =
        |key: &&str| (1..=200).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
    let key = key.to_str().ok().filter(is_key);
    match key {
        Some(key) => Ok(Some(format!("key:{key}"))),
        None => Err(ApiError::validation("`Idempotency-Key` has 1 to 200 visible characters.")),
    }
}

fn short_hash(text: &str) -> String {
    sha256(text.as_bytes())[..12].to_owned()
}

pub(super) fn describe() -> Operation {
    let plain = json!({ "message": "What can you do?" });
    let words = json!([{ "type": "text", "text": "What can you do?" }]);
    let posted = json!({
        "id": "chat1", "trigger": "submit-message", "messages": [{ "id": "m1", "role": "user", "parts": words }],
    });
    Operation::new("sendMessage", "chat", "Send a message")
        .description(
            "Streams the answer in the AI SDK's UI message stream protocol: `useChat` needs only this URL. A repeated \
             request with the same `Idempotency-Key`, or the same message, joins the first answer. Closing the \
             connection aborts the answer. The part `start` has a session token for clients without another credential.",
        )
        .optional_header(
            "Idempotency-Key",
            json!({ "type": "string", "minLength": 1, "maxLength": 200 }),
            "Identifies repeated requests. 1 to 200 visible ASCII characters.",
            "b7c1",
        )
        .optional_header(
            "X-Quarterdeck-Version",
            json!({ "type": "string" }),
            "The version of the tools for a new session, from an API key that the rollout trusts; ignored from others.",
            "1.0.3fa9c2e1",
        )
        .body::<ChatRequestShape>(&[("plain", plain), ("useChat", posted)])
        .response(200, "The streamed answer.", vec![Media::events::<StreamPart<'_>>(STREAM)])
        .errors(&[404, 409, 410])
}

pub(super) fn describe_resume() -> Operation {
    Operation::new("resumeAnswer", "chat", "Resume the stream of an answer")
        .description("From its start, in the same format as `POST /api/chat`.")
        .path_id("The client's own id of the conversation, or the session id.", "chat1")
        .response(200, "The streamed answer.", vec![Media::events::<StreamPart<'_>>(STREAM)])
        .response(204, "No answer is in progress.", Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: Value) -> Result<(Target, ChatAction), String> {
        parse_body(&body).map_err(|error| error.message)
    }

    #[test]
    fn a_plain_message_and_the_use_chat_format_are_parsed() {
        let send =
            |id: Option<&str>, text: &str| ChatAction::Send { id: id.map(str::to_owned), text: text.into() };
        assert_eq!(parse(json!({ "message": "hi" })), Ok((Target::New, send(None, "hi"))));
        assert_eq!(
            parse(json!({ "message": "hi", "sessionId": "ses_1", "other": 1 })),
            Ok((Target::Session("ses_1".into()), send(None, "hi")))
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
        let text = "[An attached file cannot be read: a.png]\nwhat is this?";
        assert_eq!(parse(posted), Ok((Target::Chat("chat1".into()), send(Some("b"), text))));
    }

    #[test]
    fn approvals_are_read_from_the_last_message_only() {
        let approval = json!({ "id": "t", "approved": true });
        let part = |state: &str| json!({ "type": "dynamic-tool", "toolCallId": "c", "state": state, "approval": approval });
        let body = |last: Value| {
            json!({ "id": "chat1", "messages": [
                { "id": "m", "role": "assistant", "parts": [part("approval-responded")] },
                { "id": "n", "role": "assistant", "parts": [last] },
            ] })
        };
        let reply = ConfirmationReply { token: "t".into(), is_approved: true };
        assert_eq!(
            parse(body(part("approval-responded"))),
            Ok((Target::Chat("chat1".into()), ChatAction::Decide(vec![reply])))
        );
        assert_eq!(
            parse(body(part("approval-requested"))),
            Err("The last message is the assistant's and answers no confirmation.".into())
        );
    }

    #[test]
    fn an_invalid_body_is_explained() {
        assert!(parse(json!([])).unwrap_err().contains("object"));
        assert!(parse(json!({})).unwrap_err().contains("`message` is missing"));
        assert!(parse(json!({ "message": 1 })).unwrap_err().contains("`message` must be a string"));
        assert!(parse(json!({ "message": "  " })).unwrap_err().contains("empty"));
        assert!(parse(json!({ "messages": [] })).unwrap_err().contains("at least one"));
        assert!(parse(json!({ "messages": [{ "role": "system" }] })).unwrap_err().contains("role"));
        assert!(parse(json!({ "messages": [5, { "role": "user" }] })).unwrap_err().contains("an object"));
        assert!(parse(json!({ "id": 4, "message": "hi" })).unwrap_err().contains("`id`"));
        assert!(
            parse(json!({ "message": "x".repeat(MAX_MESSAGE_CHARS + 1) })).unwrap_err().contains("too long")
        );
    }
}
