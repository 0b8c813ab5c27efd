//! `/api/sessions/{id}`: a conversation of the caller.

use std::iter;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use quarterdeck_agents::text::{Address, Part, SessionView, TurnView};
use quarterdeck_agents::turn::TurnCall;
use quarterdeck_contracts::{CallArguments, ErrorType, Outcome, ToolResponse};
use serde_json::{Value, json};

use super::openapi::{Operation, reference};
use crate::app::App;
use crate::caller::{Caller, situation};
use crate::error::ApiError;
use crate::input::Id;
use crate::stream::{held_body, ui};

pub(super) async fn get(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Id(id): Id,
) -> Result<Response, ApiError> {
    let user = caller.user(situation(&headers, None));
    let view = app.text.view(&user, Address::Chat(&id)).await?.ok_or_else(not_found)?;
    let bytes = held_body::to_json_bytes(&to_json(&view))?;
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
    match app.text.end(&user, Address::Chat(&id)).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(not_found()),
    }
}

fn not_found() -> ApiError {
    ApiError::not_found("Session not found.")
}

/// Messages in the AI SDK's form.
fn to_json(view: &SessionView) -> Value {
    let messages: Vec<Value> = view.turns.iter().flat_map(messages).collect();
    json!({
        "id": view.id, "mode": "text", "registryVersion": view.registry_version, "isRunning": view.is_running,
        "messages": messages,
    })
}

fn messages(turn: &TurnView) -> Vec<Value> {
    let mut messages = Vec::new();
    if !turn.user_text.is_empty() {
        let id =
            turn.user_message_id.as_deref().and_then(|id| id.rsplit_once(':')).map(|(id, _)| id.to_owned());
        let id = id.unwrap_or_else(|| format!("{}-said", turn.message_id));
        let parts = json!([{ "type": "text", "text": turn.user_text }]);
        messages.push(json!({ "id": id, "role": "user", "parts": parts, "metadata": { "at": turn.at_ms } }));
    }
    let parts: Vec<Value> = turn.parts.iter().flat_map(parts).collect();
    let metadata = json!({ "ending": turn.ending });
    messages
        .push(json!({ "id": turn.message_id, "role": "assistant", "parts": parts, "metadata": metadata }));
    messages
}

/// A part as in the stream: a call is followed by its gates and its open confirmation.
fn parts(part: &Part) -> Vec<Value> {
    match part {
        Part::Text(text) => vec![json!({ "type": "text", "text": text, "state": "done" })],
        Part::Call { call, answer, gates, question } => {
            let gates = gates.as_deref().map(|gates| ui::gates_part(&call.id, gates));
            let confirmation = question.as_deref().and_then(|request| {
                let token = request.token.as_ref()?;
                Some(ui::confirmation_part(&call.id, token.expose(), request))
            });
            iter::once(tool_part(call, answer.as_deref())).chain(gates).chain(confirmation).collect()
        }
    }
}

fn tool_part(call: &TurnCall, answer: Option<&ToolResponse>) -> Value {
    let input = match &call.call.arguments {
        CallArguments::Json(input) => input.clone(),
        CallArguments::Broken(text) => json!(text),
    };
    let mut part =
        json!({ "type": "dynamic-tool", "toolName": call.call.name, "toolCallId": call.id, "input": input });
    match answer.map(|answer| (&answer.outcome, answer)) {
        None => part["state"] = "input-available".into(),
        Some((Outcome::Success(_), answer)) => {
            part["state"] = "output-available".into();
            part["output"] = json!(answer);
        }
        Some((Outcome::Failure(error), _)) if error.kind == ErrorType::ConfirmationDenied => {
            part["state"] = "output-denied".into();
        }
        Some((Outcome::Failure(error), _)) => {
            part["state"] = "output-error".into();
            part["errorText"] = json!(error.message);
        }
    }
    part
}

pub(super) fn describe() -> Operation {
    let schema = json!({
        "type": "object", "required": ["id", "mode", "registryVersion", "isRunning", "messages"],
        "properties": {
            "id": { "type": "string" },
            "mode": { "const": "text" },
            "registryVersion": { "type": "string", "description": "The registry that the session is pinned to." },
            "isRunning": { "type": "boolean", "description": "Whether an answer is in progress." },
            "messages": { "type": "array", "items": reference("schemas", "UiMessage") },
        },
    });
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
             `data-confirmation`. The `metadata` of an answer tells how it ended: `answered`, `cut` at the length limit, \
             `filtered` or `empty` by the model, `aborted` because no client followed it, `failed`, or `closed` by a \
             tool; `null` while it is in progress or waits.",
        )
        .path_id("The session id, or the client's own id of the conversation.", "ses_1")
        .json_response(200, "The conversation.", schema, Some(example))
        .errors(&[404])
}

pub(super) fn describe_delete() -> Operation {
    Operation::new("endSession", "chat", "End a conversation")
        .path_id("The session id, or the client's own id of the conversation.", "ses_1")
        .response(204, "The conversation has ended.", Value::Null)
        .errors(&[404])
}
