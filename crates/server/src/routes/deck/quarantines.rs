//! `/api/deck/quarantines`: tools in quarantine because their calls did not end, and lifting it.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use quarterdeck_contracts::handler::Quarantine;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{Operator, Shared, check_id, operation};
use crate::error::ApiError;
use crate::input::Id;
use crate::routes::openapi::Operation;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct QuarantineList {
    #[schemars(with = "Vec<QuarantineShape>")]
    quarantines: Vec<Quarantine>,
    stuck_threads: usize,
}

#[derive(JsonSchema)]
#[schemars(rename = "Quarantine", rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
struct QuarantineShape {
    tool_id: String,
    /// How often the tool was quarantined.
    #[schemars(range(min = 1))]
    strikes: u32,
    stuck_threads: usize,
    /// Until one trial call is allowed.
    retry_after_ms: u64,
}

pub(super) async fn list(State(app): Shared, _: Operator) -> Json<QuarantineList> {
    let health = app.registry.host_health();
    Json(QuarantineList { quarantines: health.quarantines, stuck_threads: health.stuck_threads })
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
    operation("listQuarantines", "List tools in quarantine").json_response::<QuarantineList>(
        200,
        "The tools, by id.",
        None,
    )
}

pub(super) fn describe_delete() -> Operation {
    operation("liftQuarantine", "Lift a quarantine")
        .path_id("The tool.", "kb_search")
        .response(204, "The tool is in service again.", Vec::new())
        .errors(&[404])
}
