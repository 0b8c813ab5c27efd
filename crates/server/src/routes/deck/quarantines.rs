//! `/api/deck/quarantines`: tools that are out of service because their calls did not end, and the end of that.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{Operator, Shared, known_id, operation};
use crate::error::ApiError;
use crate::input::Id;
use crate::routes::openapi::Operation;

pub(super) async fn list(State(app): Shared, _: Operator) -> Json<Value> {
    let health = app.registry.host_health();
    Json(json!({ "quarantines": health.quarantines, "stuckThreads": health.stuck_threads }))
}

pub(super) async fn delete(
    State(app): Shared,
    operator: Operator,
    Id(id): Id,
) -> Result<StatusCode, ApiError> {
    known_id(&id)?;
    if !app.registry.lift_quarantine(&id) {
        return Err(ApiError::not_found("This tool is not in quarantine."));
    }
    operator.did(&app, "lift_quarantine", json!({ "toolId": id }));
    Ok(StatusCode::NO_CONTENT)
}

pub(super) fn list_described() -> Operation {
    let count = json!({ "type": "integer", "minimum": 0 });
    let quarantine = json!({
        "type": "object", "required": ["toolId", "strikes", "stuckThreads", "retryAfterMs"],
        "properties": {
            "toolId": { "type": "string" },
            "strikes": { "type": "integer", "minimum": 1, "description": "How often it has come to this." },
            "stuckThreads": count,
            "retryAfterMs": { "type": "integer", "minimum": 0, "description": "When one call is let through on trial." },
        },
    });
    let schema = json!({
        "type": "object", "required": ["quarantines", "stuckThreads"],
        "properties": { "quarantines": { "type": "array", "items": quarantine }, "stuckThreads": count },
    });
    operation("listQuarantines", "Tools that are out of service because their calls did not end").gives_json(
        200,
        "The tools, by their ids.",
        schema,
        None,
    )
}

pub(super) fn delete_described() -> Operation {
    operation("liftQuarantine", "Put a tool back into service")
        .takes_id("The tool.", "kb_search")
        .gives(204, "It is in service again.", Value::Null)
        .refuses(&[404])
}
