//! `/api/deck/blocks`: blocked clients, and lifting a block.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use quarterdeck_runtime::{blocks, lift_block};
use serde_json::{Value, json};

use super::{Operator, Shared, check_id, operation, store_error};
use crate::error::ApiError;
use crate::input::Id;
use crate::routes::openapi::Operation;

/// Those that end last.
const MAX_BLOCKS: usize = 500;

pub(super) async fn list(State(app): Shared, _: Operator) -> Result<Json<Value>, ApiError> {
    let found = blocks(&**app.orchestrator.store(), app.orchestrator.now_ms()).await;
    let mut found = found.map_err(|error| store_error(&error))?;
    let total = found.len();
    found.sort_by_key(|block| std::cmp::Reverse(block.until_ms));
    found.truncate(MAX_BLOCKS);
    Ok(Json(json!({ "blocks": found, "total": total })))
}

pub(super) async fn delete(
    State(app): Shared,
    operator: Operator,
    Id(id): Id,
) -> Result<StatusCode, ApiError> {
    check_id(&id)?;
    let lifted = lift_block(&**app.orchestrator.store(), &id, app.orchestrator.now_ms()).await;
    if !lifted.map_err(|error| store_error(&error))? {
        return Err(ApiError::not_found("This client is not blocked."));
    }
    operator.record(&app, "lift_block", json!({ "clientId": id }));
    Ok(StatusCode::NO_CONTENT)
}

pub(super) fn describe_list() -> Operation {
    let block = json!({
        "type": "object", "required": ["clientId", "untilMs", "message", "sessionId", "atMs"],
        "properties": {
            "clientId": { "type": "string" }, "untilMs": { "type": "integer" }, "atMs": { "type": "integer" },
            "message": { "type": "string", "description": "The message to the user." }, "sessionId": { "type": "string" },
        },
    });
    let schema = json!({
        "type": "object", "required": ["blocks", "total"],
        "properties": { "blocks": { "type": "array", "items": block }, "total": { "type": "integer" } },
    });
    operation("listBlocks", "List blocked clients").json_response(
        200,
        "Those that end last are first.",
        schema,
        None,
    )
}

pub(super) fn describe_delete() -> Operation {
    operation("liftBlock", "Lift a block")
        .path_id("The client.", "c_1")
        .response(204, "The block is lifted.", Value::Null)
        .errors(&[404])
}
