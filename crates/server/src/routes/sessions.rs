//! `/api/sessions/{id}`: a conversation of the caller.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use quarterdeck_agents::text::{Address, Part, SessionView, TurnView};
use quarterdeck_agents::turn::TurnCall;
use quarterdeck_contracts::{CallArguments, ErrorType, Mode, Outcome, ToolResponse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::openapi::Operation;
use super::openapi::envelope::{EnvelopeShape, any};
use super::openapi::schemas::{one_of, title_by_type};
use crate::app::App;
use crate::caller::{Caller, situation};
use crate::citations::{Citations, Source};
use crate::error::ApiError;
use crate::file_link::{FileLinks, LinkedFile};
use crate::input::Id;
use crate::page_settings::Shown;
use crate::request_log::RequestLog;
use crate::stream::data_part::DataPart;
use crate::stream::{held_body, ui};

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Conversation<'a> {
    id: &'a str,
    #[schemars(extend("const" = "text"))]
    mode: Mode,
    /// The registry that the session is pinned to.
    registry_version: &'a str,
    /// Whether an answer is in progress.
    is_running: bool,
    messages: Vec<UiMessage<'a>>,
}

/// A message in the AI SDK's form.
#[derive(Serialize, JsonSchema)]
struct UiMessage<'a> {
    id: String,
    role: Role,
    parts: Vec<MessagePart<'a>>,
    metadata: Value,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Role {
    User,
    Assistant,
}

/// Text, a tool call with its result, or data as in the stream.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
#[schemars(rename = "UiMessagePart", transform = one_of, transform = title_by_type)]
enum MessagePart<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("examples" = ["done"]))]
        state: Option<&'a str>,
    },
    DynamicTool {
        tool_name: &'a str,
        tool_call_id: &'a str,
        /// The arguments.
        #[schemars(schema_with = "any")]
        input: Cow<'a, Value>,
        #[schemars(extend("enum" = ["input-available", "output-available", "output-error", "output-denied"]))]
        state: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "EnvelopeShape")]
        output: Option<Box<Cow<'a, ToolResponse>>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error_text: Option<&'a str>,
    },
    /// A record on the web that the text cites.
    SourceUrl { source_id: String, url: String, title: String },
    /// A record without an address that the text cites.
    SourceDocument {
        source_id: String,
        #[schemars(extend("const" = "text/plain"))]
        media_type: &'static str,
        title: String,
    },
    /// A file that a tool has made.
    File { url: &'a str, media_type: &'a str },
    #[serde(untagged)]
    Data(DataPart<'a>),
}

pub(super) async fn get(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    log: RequestLog,
    headers: HeaderMap,
    Id(id): Id,
) -> Result<Response, ApiError> {
    let user = caller.user(situation(&headers, None));
    let view = app.text.view(&user, Address::Chat(&id)).await?.ok_or_else(not_found)?;
    log.set_session(&view.id);
    let links = FileLinks::new(app.clone(), view.id.clone());
    let files = files_by_call(&links, &view);
    let shown = ShownParts { files: &files, show: app.settings.page.load().show };
    let bytes = held_body::to_json_bytes(&conversation(&view, &shown))?;
    let permit = app.admission.admit_response(&caller.client.id, bytes.len())?;
    Ok(held_body::json(StatusCode::OK, bytes, permit))
}

pub(super) async fn delete(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Id(id): Id,
) -> Result<StatusCode, ApiError> {
    let user = caller.user(situation(&headers, None));
    match app.text.delete(&user, Address::Chat(&id)).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(not_found()),
    }
}

fn not_found() -> ApiError {
    ApiError::not_found("Session not found.")
}

/// What the parts of a conversation are written with.
struct ShownParts<'a> {
    files: &'a FilesByCall<'a>,
    show: Shown,
}

/// Messages in the AI SDK's form.
fn conversation<'a>(view: &'a SessionView, shown: &ShownParts<'a>) -> Conversation<'a> {
    Conversation {
        id: &view.id,
        mode: Mode::Text,
        registry_version: &view.registry_version,
        is_running: view.is_running,
        messages: view.turns.iter().flat_map(|turn| messages(turn, shown)).collect(),
    }
}

fn messages<'a>(turn: &'a TurnView, shown: &ShownParts<'a>) -> Vec<UiMessage<'a>> {
    let mut messages = Vec::new();
    if !turn.user_text.is_empty() {
        let id =
            turn.user_message_id.as_deref().and_then(|id| id.rsplit_once(':')).map(|(id, _)| id.to_owned());
        messages.push(UiMessage {
            id: id.unwrap_or_else(|| format!("{}-said", turn.message_id)),
            role: Role::User,
            parts: vec![MessagePart::Text { text: &turn.user_text, state: None }],
            metadata: json!({ "at": turn.at_ms }),
        });
    }
    messages.push(UiMessage {
        id: turn.message_id.to_string(),
        role: Role::Assistant,
        parts: all_parts(turn, shown),
        metadata: answer_metadata(turn),
    });
    messages
}

/// How an answer ended, and what the user thinks of it.
fn answer_metadata(turn: &TurnView) -> Value {
    let mut metadata = json!({ "ending": turn.ending });
    if let Some(feedback) = &turn.feedback {
        metadata["feedback"] = json!(feedback);
    }
    metadata
}

/// The parts of an answer; a text is followed by the records that it cites for the first time.
fn all_parts<'a>(turn: &'a TurnView, shown: &ShownParts<'a>) -> Vec<MessagePart<'a>> {
    let mut citations = Citations::default();
    let mut all = Vec::new();
    for part in &turn.parts {
        match part {
            Part::Text(text) => citations.add_text(text),
            Part::Call { answer: Some(answer), .. } => citations.add_result(answer),
            Part::Call { .. } => {}
        }
        all.extend(parts(part, shown));
        all.extend(citations.take_new_sources().into_iter().map(source_part));
    }
    all
}

fn source_part<'a>(Source { id: source_id, title, url }: Source) -> MessagePart<'a> {
    match url {
        Some(url) => MessagePart::SourceUrl { source_id, url, title },
        None => MessagePart::SourceDocument { source_id, media_type: ui::SOURCE_MEDIA_TYPE, title },
    }
}

/// A part as in the stream: a call is followed by its files, its gates and its open confirmation. A call that waits for
/// approval is shown whatever else is hidden.
fn parts<'a>(part: &'a Part, ShownParts { files, show }: &ShownParts<'a>) -> Vec<MessagePart<'a>> {
    match part {
        Part::Text(text) => vec![MessagePart::Text { text, state: Some("done") }],
        Part::Call { call, answer, gates, question } => {
            let confirmation = question.as_deref().and_then(|request| {
                let token = request.token.as_ref()?;
                Some(ui::confirmation_part(&call.id, token.expose(), request))
            });
            let is_open = confirmation.is_some();
            let gates = gates.as_deref().filter(|_| show.gates).map(|gates| ui::gates_part(&call.id, gates));
            let gates = gates.filter(|_| show.tool_cards || is_open);
            let tool = (show.tool_cards || is_open).then(|| {
                let show = Shown { json: show.json || is_open, ..*show };
                tool_part(call, answer.as_deref(), show)
            });
            let data = gates.into_iter().chain(confirmation).map(MessagePart::Data);
            let files = files.get(&*call.id).into_iter().flatten().flat_map(file_parts);
            tool.into_iter().chain(files).chain(data).collect()
        }
    }
}

/// The files that each call shows, with new links.
type FilesByCall<'a> = HashMap<&'a str, Vec<LinkedFile>>;

fn files_by_call<'a>(links: &FileLinks, view: &'a SessionView) -> FilesByCall<'a> {
    let parts = view.turns.iter().flat_map(|turn| &turn.parts);
    let answered = parts.filter_map(|part| match part {
        Part::Call { call, answer: Some(answer), .. } => Some((&*call.id, links.of(&call.id, answer))),
        _ => None,
    });
    answered.filter(|(_, files)| !files.is_empty()).collect()
}

fn file_parts(file: &LinkedFile) -> [MessagePart<'_>; 2] {
    let media_type = file.media_type.media_type();
    [MessagePart::File { url: &file.url, media_type }, MessagePart::Data(file.part())]
}

fn tool_part<'a>(call: &'a TurnCall, answer: Option<&'a ToolResponse>, show: Shown) -> MessagePart<'a> {
    let input = match &call.call.arguments {
        _ if !show.json => Cow::Owned(json!({})),
        CallArguments::Json(input) => Cow::Borrowed(input),
        CallArguments::Broken(text) => Cow::Owned(json!(text)),
    };
    let (state, output, error_text) = match answer.map(|answer| (&answer.outcome, answer)) {
        None => ("input-available", None, None),
        Some((Outcome::Success(_), answer)) => {
            ("output-available", Some(Box::new(show.response(answer))), None)
        }
        Some((Outcome::Failure(error), _)) if error.kind == ErrorType::ConfirmationDenied => {
            ("output-denied", None, None)
        }
        Some((Outcome::Failure(error), _)) => ("output-error", None, Some(&*error.message)),
    };
    let (tool_name, tool_call_id) = (&*call.call.name, &*call.id);
    MessagePart::DynamicTool { tool_name, tool_call_id, input, state, output, error_text }
}

pub(super) fn describe() -> Operation {
    let words = |text: &str| json!([{ "type": "text", "text": text }]);
    let example = json!({
        "id": "ses_1", "mode": "text", "registryVersion": "1.0.3fa9c2e1", "isRunning": false,
        "messages": [
            { "id": "m1", "role": "user", "parts": words("Good morning"), "metadata": { "at": 1_760_000_000_000_u64 } },
            {
                "id": "msg_1", "role": "assistant", "parts": words("Good morning."),
                "metadata": { "ending": "answered" },
            },
        ],
    });
    Operation::new("getSession", "chat", "Get a conversation")
        .description(
            "Messages in the AI SDK's form, for own sessions only. A call that needs approval is followed by its part \
             `data-confirmation`. The `metadata` of an answer tells how it ended: `answered`, `cut` at the length \
             limit, `filtered` or `empty` by the model, `aborted` because no client followed it, `failed`, or `closed` \
             by a tool; `null` while it is in progress or waits; and in `feedback` the user's `rating`, `up` or `down`, with \
             its `comment`, if there is one. One whose session has ended is shown for as long as it is listed.",
        )
        .path_id("The session id, or the client's own id of the conversation.", "ses_1")
        .json_response::<Conversation<'_>>(200, "The conversation.", Some(example))
        .errors(&[404])
}

pub(super) fn describe_delete() -> Operation {
    Operation::new("endSession", "chat", "Delete a conversation")
        .description(
            "Ends it, and erases its messages, files and ratings. What its calls did stays done and on the record.",
        )
        .path_id("The session id, or the client's own id of the conversation.", "ses_1")
        .response(204, "The conversation is deleted.", Vec::new())
        .errors(&[404])
}
