//! `/api/sessions/{id}`: a conversation of the caller's own.

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
    let visitor = caller.visitor(situation(&headers, None));
    let view = app.text.view(&visitor, Address::Chat(&id)).await?.ok_or_else(unknown)?;
    let written = held_body::written(&shown(&view))?;
    let place = app.admit_large(&caller.client.id, written.len())?;
    Ok(held_body::json(StatusCode::OK, written, place))
}

pub(super) async fn delete(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Id(id): Id,
) -> Result<StatusCode, ApiError> {
    let visitor = caller.visitor(situation(&headers, None));
    match app.text.end(&visitor, Address::Chat(&id)).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(unknown()),
    }
}

fn unknown() -> ApiError {
    ApiError::not_found("There is no such session of yours.")
}

/// Messages in the AI SDK's form, so that a page can begin with them.
fn shown(view: &SessionView) -> Value {
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

/// A part as the stream has told it: a call, and after it what the gates said and what the person is asked.
fn parts(part: &Part) -> Vec<Value> {
    match part {
        Part::Text(text) => vec![json!({ "type": "text", "text": text, "state": "done" })],
        Part::Call { call, answer, gates, question } => {
            let gates = gates.as_deref().map(|gates| ui::gates_part(&call.id, gates));
            let question = question.as_deref().and_then(|request| {
                let token = request.token.as_ref()?;
                Some(ui::confirmation_part(&call.id, token.expose(), request))
            });
            iter::once(tool_part(call, answer.as_deref())).chain(gates).chain(question).collect()
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

pub(super) fn described() -> Operation {
    let schema = json!({
        "type": "object", "required": ["id", "mode", "registryVersion", "isRunning", "messages"],
        "properties": {
            "id": { "type": "string" },
            "mode": { "const": "text" },
            "registryVersion": { "type": "string", "description": "The tools that the session is pinned to." },
            "isRunning": { "type": "boolean", "description": "Whether an answer is being written." },
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
    Operation::new("getSession", "chat", "What was said")
        .about(
            "Messages in the AI SDK's form, so that a page can begin with them. Own sessions only. A call that waits for \
             the person's word is followed by its part `data-confirmation`. The `metadata` of an answer says how it \
             ended: `answered`, `cut` at the largest length, `filtered` or left `empty` by the model, `aborted` because \
             nobody followed it any more, `failed`, or `closed` by a tool; `null` while it is written, or waits.",
        )
        .takes_id("The session, or the client's own name for the conversation.", "ses_1")
        .gives_json(200, "The conversation.", schema, Some(example))
        .refuses(&[404])
}

pub(super) fn delete_described() -> Operation {
    Operation::new("endSession", "chat", "End a conversation")
        .takes_id("The session, or the client's own name for the conversation.", "ses_1")
        .gives(204, "It has ended.", Value::Null)
        .refuses(&[404])
}
