//! `/api/deck/alarms`: alert rules that hold, and lifting an alarm.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use quarterdeck_alerts::Alarm;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Operator, Shared, operation};
use crate::error::ApiError;
use crate::input;
use crate::routes::openapi::Operation;

#[derive(Serialize, JsonSchema)]
pub(super) struct AlarmList {
    #[schemars(with = "Vec<AlarmShape>")]
    alarms: Vec<Alarm>,
    /// How many rules are evaluated.
    rules: usize,
}

#[derive(JsonSchema)]
#[schemars(rename = "Alarm", rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
struct AlarmShape {
    /// The rule and its labels.
    id: String,
    rule: String,
    #[schemars(extend("enum" = ["warning", "critical"]))]
    severity: String,
    summary: String,
    /// What to do about it.
    remedy: String,
    labels: BTreeMap<String, String>,
    /// What was compared, as it is now.
    value: f64,
    /// Milliseconds since 1970.
    since_ms: u64,
    /// `pending` does not hold for long enough yet; `lifted` was seen by an operator.
    #[schemars(extend("enum" = ["pending", "firing", "lifted"]))]
    state: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LiftRequest {
    /// The alarm.
    id: String,
}

pub(super) async fn list(State(app): Shared, _: Operator) -> Json<AlarmList> {
    let alarms = &app.operations.alarms;
    Json(AlarmList { alarms: alarms.list(), rules: alarms.rules().len() })
}

pub(super) async fn lift(State(app): Shared, operator: Operator, body: Body) -> Result<StatusCode, ApiError> {
    let LiftRequest { id } = input::typed_json(&app, body).await?;
    if !app.lift_alarm(&id) {
        return Err(ApiError::not_found("No such alarm fires."));
    }
    operator.record(&app, "lift_alarm", json!({ "alarm": id }));
    Ok(StatusCode::NO_CONTENT)
}

pub(super) fn describe_list() -> Operation {
    operation("listAlarms", "List alarms").json_response::<AlarmList>(
        200,
        "The alarms, the worst first.",
        None,
    )
}

pub(super) fn describe_lift() -> Operation {
    operation("liftAlarm", "Lift an alarm")
        .description("The alarm is quiet until it has ended and its rule holds again.")
        .body::<LiftRequest>(&[("lift", json!({ "id": "tool_errors:tool=kb_search" }))])
        .response(204, "The alarm is lifted.", Vec::new())
        .errors(&[404])
}
