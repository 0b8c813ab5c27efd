//! `GET /api/me`: the caller's client id, block and models.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use jiff::Timestamp;
use quarterdeck_runtime::find_block;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::openapi::Operation;
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;

/// The caller.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Me {
    client_id: String,
    /// Whether a token was verified.
    authenticated: bool,
    block: Option<MyBlock>,
    /// The text model, as provider/model.
    model: String,
    /// Whether it is the built-in rehearsal, which is not a language model.
    is_rehearsal: bool,
    /// The voice model, or null if voice is off.
    voice: Option<VoiceModel>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct MyBlock {
    #[schemars(extend("format" = "date-time"))]
    timeout_until: String,
    /// The message to the user.
    message: String,
    seconds_left: u64,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct VoiceModel {
    model: String,
    /// Whether it is the built-in rehearsal, which is not a language model.
    is_rehearsal: bool,
}

pub(super) async fn get(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Me>, ApiError> {
    let now = app.orchestrator.now_ms();
    let block = find_block(&**app.orchestrator.store(), &caller.client.id, now)
        .await
        .map_err(|error| ApiError::internal("block lookup failed", &error))?;
    let block = block.map(|block| {
        let until = Timestamp::from_millisecond(block.until_ms as i64).unwrap_or(Timestamp::MAX);
        MyBlock {
            timeout_until: until.to_string(),
            message: block.message,
            seconds_left: block.until_ms.saturating_sub(now).div_ceil(1_000),
        }
    });
    let voice = app
        .voice
        .as_ref()
        .map(|voice| VoiceModel { model: voice.model().to_owned(), is_rehearsal: voice.is_rehearsal() });
    Ok(Json(Me {
        client_id: caller.client.id,
        authenticated: caller.client.facts.authenticated,
        block,
        model: app.text.model().to_owned(),
        is_rehearsal: app.text.is_rehearsal(),
        voice,
    }))
}

pub(super) fn describe() -> Operation {
    let example = json!({
        "clientId": "c_4fd1a7c09be2235ac1a0b6b5f3c1f8a2", "authenticated": false, "block": null,
        "model": "rehearsal/built-in", "isRehearsal": true, "voice": null,
    });
    Operation::new("getMe", "client", "Get the caller")
        .description("Works for blocked clients too.")
        .json_response::<Me>(200, "The caller.", Some(example))
}
