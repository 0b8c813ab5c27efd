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
use super::watch::feed_for;
use crate::app::App;
use crate::caller::{Caller, Credential};
use crate::error::ApiError;
use crate::local_servers::LocalServer;
use crate::model_trouble::TroubleReport;

/// The caller.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Me {
    client_id: String,
    /// Whether a token was verified.
    authenticated: bool,
    /// The conversation that the session token of the request names.
    session_id: Option<String>,
    block: Option<MyBlock>,
    /// The text model, as provider/model.
    model: String,
    /// Whether it is the built-in rehearsal, which is not a language model.
    is_rehearsal: bool,
    /// Model servers on this machine that could answer instead of the rehearsal.
    local_servers: Vec<LocalServer>,
    /// The trouble with it, or null if it answers.
    model_trouble: Option<TroubleReport>,
    /// The voice model, or null if voice is off.
    voice: Option<VoiceModel>,
    /// Whether the server follows its folders and reports to this caller with `/api/watch`.
    watch: bool,
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
    /// How an operator lifts it; only for callers who are operators, as on loopback without an operators' token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["quarterdeck blocks lift c_4fd1a7c09be2235ac1a0b6b5f3c1f8a2"]))]
    lift: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct VoiceModel {
    model: String,
    /// Whether it is the built-in rehearsal, which is not a language model.
    is_rehearsal: bool,
    /// Whether its audio is speech. Where it is not, the page speaks the transcript.
    speaks: bool,
    /// Whether it understands speech. Where it does not, one types into the call.
    hears: bool,
}

pub(super) async fn get(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Me>, ApiError> {
    let now = app.orchestrator.now_ms();
    let watch = feed_for(&app, &caller).is_some();
    let block = find_block(&**app.orchestrator.store(), &caller.client.id, now)
        .await
        .map_err(|error| ApiError::internal("block lookup failed", &error))?;
    let block = block.or(caller.address_block.map(|block| *block)).map(|block| {
        let until = Timestamp::from_millisecond(block.until_ms as i64).unwrap_or(Timestamp::MAX);
        MyBlock {
            timeout_until: until.to_string(),
            message: block.message,
            seconds_left: block.until_ms.saturating_sub(now).div_ceil(1_000),
            lift: caller.is_operator.then(|| format!("quarterdeck blocks lift {}", caller.client.id)),
        }
    });
    let voice = app.voice.as_ref().map(|voice| VoiceModel {
        model: voice.model().to_owned(),
        is_rehearsal: voice.is_rehearsal(),
        speaks: voice.speaks(),
        hears: voice.hears(),
    });
    let session_id = match caller.credential {
        Credential::SessionToken(session) => session,
        _ => None,
    };
    Ok(Json(Me {
        session_id,
        watch,
        client_id: caller.client.id,
        authenticated: caller.client.facts.authenticated,
        block,
        model: app.text.model().to_owned(),
        is_rehearsal: app.text.is_rehearsal(),
        local_servers: app.local_servers.list(),
        model_trouble: app.text.model_trouble().as_ref().map(TroubleReport::new),
        voice,
    }))
}

pub(super) fn describe() -> Operation {
    let example = json!({
        "clientId": "c_4fd1a7c09be2235ac1a0b6b5f3c1f8a2", "authenticated": false, "sessionId": null, "block": null,
        "model": "rehearsal/built-in", "isRehearsal": true, "modelTrouble": null, "localServers": [], "voice": null,
        "watch": false,
    });
    Operation::new("getMe", "client", "Get the caller")
        .description("Works for blocked clients too.")
        .json_response::<Me>(200, "The caller.", Some(example))
}
