//! `/api/deck/blocks`: who may not talk to the agent, and the end of that.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use quarterdeck_runtime::{blocks, lift_block};
use serde_json::{Value, json};

use super::{Operator, Shared, known_id, operation, stored};
use crate::error::ApiError;
use crate::input::Id;
use crate::routes::openapi::Operation;

/// How many blocks are given; those that end last.
const MOST: usize = 500;

pub(super) async fn list(State(app): Shared, _: Operator) -> Result<Json<Value>, ApiError> {
    let found = blocks(&**app.orchestrator.store(), app.orchestrator.now_ms()).await;
    let mut found = found.map_err(|error| stored(&error))?;
    let total = found.len();
    found.sort_by_key(|block| std::cmp::Reverse(block.until_ms));
    found.truncate(MOST);
    Ok(Json(json!({ "blocks": found, "total": total })))
}

pub(super) async fn delete(
    State(app): Shared,
    operator: Operator,
    Id(id): Id,
) -> Result<StatusCode, ApiError> {
    known_id(&id)?;
    let lifted = lift_block(&**app.orchestrator.store(), &id, app.orchestrator.now_ms()).await;
    if !lifted.map_err(|error| stored(&error))? {
        return Err(ApiError::not_found("This client is not blocked."));
    }
    operator.did(&app, "lift_block", json!({ "clientId": id }));
    Ok(StatusCode::NO_CONTENT)
}

pub(super) fn list_described() -> Operation {
    let block = json!({
        "type": "object", "required": ["clientId", "untilMs", "message", "sessionId", "atMs"],
        "properties": {
            "clientId": { "type": "string" }, "untilMs": { "type": "integer" }, "atMs": { "type": "integer" },
            "message": { "type": "string", "description": "What they were told." }, "sessionId": { "type": "string" },
        },
    });
    let schema = json!({
        "type": "object", "required": ["blocks", "total"],
        "properties": { "blocks": { "type": "array", "items": block }, "total": { "type": "integer" } },
    });
    operation("listBlocks", "Who is blocked").gives_json(200, "Those that end last come first.", schema, None)
}

pub(super) fn delete_described() -> Operation {
    operation("liftBlock", "Lift a block")
        .takes_id("The client.", "c_1")
        .gives(204, "It is lifted.", Value::Null)
        .refuses(&[404])
}
