//! `GET /api/me`: who the server takes the caller for, and whether they are blocked.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use axum::extract::State;
use axum::{Extension, Json};
use jiff::Timestamp;
use quarterdeck_runtime::block_of;
use serde_json::{Value, json};

use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;

pub(super) async fn get(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Value>, ApiError> {
    let now = app.orchestrator.now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    let block = block_of(&**app.orchestrator.store(), &caller.client.id, now)
        .await
        .map_err(|error| ApiError::internal("a block could not be looked up", &error))?;
    let block = block.map(|block| {
        let until = Timestamp::from_millisecond(block.until_ms as i64).unwrap_or(Timestamp::MAX);
        json!({
            "timeoutUntil": until.to_string(), "message": block.message,
            "secondsLeft": block.until_ms.saturating_sub(now).div_ceil(1_000),
        })
    });
    Ok(Json(json!({
        "clientId": caller.client.id, "authenticated": caller.client.facts.authenticated, "block": block,
        "model": app.text.model(),
    })))
}
