//! `GET /api/me`: the caller's client id, block and models.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use jiff::Timestamp;
use quarterdeck_runtime::find_block;
use serde_json::{Value, json};

use super::openapi::Operation;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;

pub(super) async fn get(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Value>, ApiError> {
    let now = app.orchestrator.now_ms();
    let block = find_block(&**app.orchestrator.store(), &caller.client.id, now)
        .await
        .map_err(|error| ApiError::internal("block lookup failed", &error))?;
    let block = block.map(|block| {
        let until = Timestamp::from_millisecond(block.until_ms as i64).unwrap_or(Timestamp::MAX);
        json!({
            "timeoutUntil": until.to_string(), "message": block.message,
            "secondsLeft": block.until_ms.saturating_sub(now).div_ceil(1_000),
        })
    });
    let model = app.text.model();
    let voice = app.voice.as_ref().map(|voice| voice.model());
    Ok(Json(json!({
        "clientId": caller.client.id, "authenticated": caller.client.facts.authenticated, "block": block,
        "model": model, "isRehearsal": is_rehearsal(model),
        "voice": voice.map(|model| json!({ "model": model, "isRehearsal": is_rehearsal(model) })),
    })))
}

/// Whether it is built in and not a language model.
fn is_rehearsal(model: &str) -> bool {
    let provider = model.split('/').next();
    matches!(provider, Some("rehearsal" | "simulator"))
}

pub(super) fn describe() -> Operation {
    let block = json!({
        "type": ["object", "null"], "required": ["timeoutUntil", "message", "secondsLeft"],
        "properties": {
            "timeoutUntil": { "type": "string", "format": "date-time" },
            "message": { "type": "string", "description": "The message to the user." },
            "secondsLeft": { "type": "integer", "minimum": 0 },
        },
    });
    let rehearsal = json!({
        "type": "boolean", "description": "Whether it is the built-in rehearsal, which is not a language model.",
    });
    let schema = json!({
        "type": "object",
        "required": ["clientId", "authenticated", "block", "model", "isRehearsal", "voice"],
        "properties": {
            "clientId": { "type": "string" },
            "authenticated": { "type": "boolean", "description": "Whether a token was verified." },
            "block": block,
            "model": { "type": "string", "description": "The text model, as provider/model." },
            "isRehearsal": rehearsal.clone(),
            "voice": {
                "type": ["object", "null"], "required": ["model", "isRehearsal"],
                "description": "The voice model, or null if voice is off.",
                "properties": { "model": { "type": "string" }, "isRehearsal": rehearsal },
            },
        },
    });
    let example = json!({
        "clientId": "c_4fd1a7c09be2235ac1a0b6b5f3c1f8a2", "authenticated": false, "block": null,
        "model": "rehearsal/built-in", "isRehearsal": true, "voice": null,
    });
    Operation::new("getMe", "client", "Get the caller")
        .description("Works for blocked clients too.")
        .json_response(200, "The caller.", schema, Some(example))
}
