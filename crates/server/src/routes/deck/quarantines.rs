//! `/api/deck/quarantines`: tools in quarantine because their calls did not end, and lifting it.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{Operator, Shared, check_id, operation};
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
    check_id(&id)?;
    if !app.registry.lift_quarantine(&id) {
        return Err(ApiError::not_found("This tool is not in quarantine."));
    }
    operator.record(&app, "lift_quarantine", json!({ "toolId": id }));
    Ok(StatusCode::NO_CONTENT)
}

pub(super) fn describe_list() -> Operation {
    let count = json!({ "type": "integer", "minimum": 0 });
    let quarantine = json!({
        "type": "object", "required": ["toolId", "strikes", "stuckThreads", "retryAfterMs"],
        "properties": {
            "toolId": { "type": "string" },
            "strikes": { "type": "integer", "minimum": 1, "description": "How often the tool was quarantined." },
            "stuckThreads": count,
            "retryAfterMs": { "type": "integer", "minimum": 0, "description": "Until one trial call is allowed." },
        },
    });
    let schema = json!({
        "type": "object", "required": ["quarantines", "stuckThreads"],
        "properties": { "quarantines": { "type": "array", "items": quarantine }, "stuckThreads": count },
    });
    operation("listQuarantines", "List tools in quarantine").json_response(
        200,
        "The tools, by id.",
        schema,
        None,
    )
}

pub(super) fn describe_delete() -> Operation {
    operation("liftQuarantine", "Lift a quarantine")
        .path_id("The tool.", "kb_search")
        .response(204, "The tool is in service again.", Value::Null)
        .errors(&[404])
}
