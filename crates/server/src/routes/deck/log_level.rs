//! `/api/deck/log-level`: what is logged, and changing it while the server runs.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Operator, Shared, operation};
use crate::app::App;
use crate::deck::{LevelView, LogLevels};
use crate::error::ApiError;
use crate::input;
use crate::routes::openapi::Operation;

const MAX_FILTER_BYTES: usize = 1_000;
const MAX_LIFETIME_SECONDS: u64 = 86_400;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LogLevel {
    /// What is logged now: a level, and levels of parts of the program.
    filter: String,
    /// What holds when the time is over.
    lasting: String,
    /// What the server was started with.
    configured: String,
    /// When the filter is reverted, in milliseconds since 1970, or null if it is not.
    until_ms: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct LogLevelRequest {
    /// A level (`off`, `error`, `warn`, `info`, `debug`, `trace`), or a list such as `info,quarterdeck_server=debug`.
    /// Null, or left out: the configured one.
    #[schemars(length(min = 1, max = MAX_FILTER_BYTES))]
    filter: Option<String>,
    /// After how many seconds it is reverted; never if left out.
    #[schemars(range(min = 1, max = MAX_LIFETIME_SECONDS))]
    for_seconds: Option<u64>,
}

pub(super) async fn get(State(app): Shared, _: Operator) -> Result<Json<LogLevel>, ApiError> {
    Ok(Json(LogLevel::new(levels(&app)?.view())))
}

pub(super) async fn post(
    State(app): Shared,
    operator: Operator,
    body: Body,
) -> Result<Json<LogLevel>, ApiError> {
    let LogLevelRequest { filter, for_seconds } = input::typed_json(&app, body).await?;
    if filter.as_ref().is_some_and(|filter| filter.len() > MAX_FILTER_BYTES) {
        return Err(ApiError::validation(format!("`filter` has at most {MAX_FILTER_BYTES} bytes.")));
    }
    if for_seconds.is_some_and(|seconds| !(1..=MAX_LIFETIME_SECONDS).contains(&seconds)) {
        return Err(ApiError::validation(format!("`forSeconds` is 1 to {MAX_LIFETIME_SECONDS}.")));
    }
    let levels = levels(&app)?;
    let before = levels.view().current;
    let lifetime = for_seconds.map(Duration::from_secs);
    let view = app.set_log_level(&levels, filter.as_deref(), lifetime).map_err(ApiError::validation)?;
    let details = json!({ "filter": view.current, "before": before, "forSeconds": for_seconds });
    operator.record(&app, "log_level", details);
    Ok(Json(LogLevel::new(view)))
}

fn levels(app: &App) -> Result<Arc<LogLevels>, ApiError> {
    let levels = app.operations.log_levels.clone();
    levels.ok_or_else(|| ApiError::not_found("The log of this server cannot be changed while it runs."))
}

impl LogLevel {
    fn new(view: LevelView) -> Self {
        let LevelView { current, lasting, configured, until_ms } = view;
        Self { filter: current, lasting, configured, until_ms }
    }
}

pub(super) fn describe() -> Operation {
    operation("getLogLevel", "Get the level of the log")
        .json_response::<LogLevel>(200, "The level.", Some(example()))
        .errors(&[404])
}

pub(super) fn describe_post() -> Operation {
    operation("setLogLevel", "Change the level of the log")
        .description(
            "It holds at once, on this node, until it is changed, the time is over, or the server ends.",
        )
        .body::<LogLevelRequest>(&[
            ("for a while", json!({ "filter": "info,quarterdeck_server=debug", "forSeconds": 600 })),
            ("as configured", json!({})),
        ])
        .json_response::<LogLevel>(200, "The level.", Some(example()))
        .errors(&[404])
}

fn example() -> serde_json::Value {
    json!({
        "filter": "info,quarterdeck_server=debug", "lasting": "info", "configured": "info",
        "untilMs": 1_760_000_600_000_u64,
    })
}
