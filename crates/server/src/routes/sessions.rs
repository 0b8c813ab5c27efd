//! `/api/sessions/{id}`: a conversation of the caller's own.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use quarterdeck_agents::text::{Address, Part, SessionView, TurnView};
use quarterdeck_contracts::{CallArguments, ErrorType, Outcome};
use serde_json::{Value, json};

use crate::app::App;
use crate::caller::{Caller, situation};
use crate::error::ApiError;

pub(super) async fn get(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let visitor = caller.visitor(situation(&headers, None));
    let view = app.text.view(&visitor, Address::Chat(&id)).await?.ok_or_else(unknown)?;
    Ok(Json(shown(&view)))
}

pub(super) async fn delete(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Path(id): Path<String>,
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
    if !turn.said.is_empty() {
        let id = turn.person_id.as_deref().and_then(|id| id.rsplit_once(':')).map(|(id, _)| id.to_owned());
        let id = id.unwrap_or_else(|| format!("{}-said", turn.message_id));
        let parts = json!([{ "type": "text", "text": turn.said }]);
        messages.push(json!({ "id": id, "role": "user", "parts": parts, "metadata": { "at": turn.at_ms } }));
    }
    let parts: Vec<Value> = turn.parts.iter().map(part).collect();
    messages.push(json!({ "id": turn.message_id, "role": "assistant", "parts": parts }));
    messages
}

fn part(part: &Part) -> Value {
    let (call, answer) = match part {
        Part::Text(text) => return json!({ "type": "text", "text": text, "state": "done" }),
        Part::Call(call, answer) => (call, answer),
    };
    let input = match &call.call.arguments {
        CallArguments::Json(input) => input.clone(),
        CallArguments::Broken(text) => json!(text),
    };
    let mut part =
        json!({ "type": "dynamic-tool", "toolName": call.call.name, "toolCallId": call.id, "input": input });
    match answer.as_deref().map(|answer| (&answer.outcome, answer)) {
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
