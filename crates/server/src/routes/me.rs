//! `GET /api/me`: who the server takes the caller for, and whether they are blocked.

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
        .map_err(|error| ApiError::internal("a block could not be looked up", &error))?;
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

/// Whether it is what is built in, which is no language model and must not be taken for one.
fn is_rehearsal(model: &str) -> bool {
    let provider = model.split('/').next();
    matches!(provider, Some("rehearsal" | "simulator"))
}

pub(super) fn described() -> Operation {
    let block = json!({
        "type": ["object", "null"], "required": ["timeoutUntil", "message", "secondsLeft"],
        "properties": {
            "timeoutUntil": { "type": "string", "format": "date-time" },
            "message": { "type": "string", "description": "What the client was told." },
            "secondsLeft": { "type": "integer", "minimum": 0 },
        },
    });
    let rehearsal = json!({
        "type": "boolean", "description": "Whether it is the rehearsal that is built in, which is no language model.",
    });
    let schema = json!({
        "type": "object",
        "required": ["clientId", "authenticated", "block", "model", "isRehearsal", "voice"],
        "properties": {
            "clientId": { "type": "string" },
            "authenticated": { "type": "boolean", "description": "Whether a verified token says who it is." },
            "block": block,
            "model": { "type": "string", "description": "Who answers, provider and model." },
            "isRehearsal": rehearsal.clone(),
            "voice": {
                "type": ["object", "null"], "required": ["model", "isRehearsal"],
                "description": "Who is spoken with, if anybody is.",
                "properties": { "model": { "type": "string" }, "isRehearsal": rehearsal },
            },
        },
    });
    let example = json!({
        "clientId": "c_4fd1a7c09be2235ac1a0b6b5f3c1f8a2", "authenticated": false, "block": null,
        "model": "rehearsal/built-in", "isRehearsal": true, "voice": null,
    });
    Operation::new("getMe", "client", "Who the server takes the caller for")
        .about("Also for blocked clients, who learn here how long it takes.")
        .gives_json(200, "The caller.", schema, Some(example))
}
