//! `/api/tasks`: the caller's calls that go on in the background.

use std::sync::Arc;

use axum::Extension;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use quarterdeck_contracts::{Mode, StoreError, ToolResponse};
use quarterdeck_runtime::{TaskCancellation, TaskStatus, TaskSummary};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::openapi::Operation;
use super::openapi::envelope::{EnvelopeShape, any};
use crate::app::App;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::input::Id;
use crate::stream::held_body;

#[derive(Serialize, JsonSchema)]
pub(super) struct TaskList {
    /// Those that run first, then the latest.
    tasks: Vec<TaskView>,
}

/// A call that goes on, or went on, in the background.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Task")]
pub(super) struct TaskView {
    id: String,
    session_id: String,
    /// The call that began it.
    call_id: String,
    tool: String,
    #[schemars(extend("enum" = ["text", "voice"]))]
    #[schemars(with = "String")]
    mode: Mode,
    #[schemars(extend("enum" = ["running", "done", "failed", "cancelled", "unknown"]))]
    #[schemars(with = "String")]
    status: TaskStatus,
    /// In milliseconds since 1970, like the other times.
    started_ms: u64,
    /// When it is stopped at the latest.
    deadline_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_ms: Option<u64>,
    /// What it says of its progress while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<String>,
    /// Its latest partial result while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any")]
    partial: Option<Value>,
    /// What it came to, where one task is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<EnvelopeShape>")]
    response: Option<ToolResponse>,
}

impl TaskView {
    fn new(task: TaskSummary, app: &App) -> Self {
        let show = app.settings.page.load().show;
        Self {
            id: task.id,
            session_id: task.session_id,
            call_id: task.call_id,
            tool: task.tool,
            mode: task.mode,
            status: task.status,
            started_ms: task.started_ms,
            deadline_ms: task.deadline_ms,
            ended_ms: task.ended_ms,
            progress: task.progress,
            partial: task.partial.filter(|_| show.json),
            response: task.response.map(|response| show.response(&response).into_owned()),
        }
    }
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<TaskList>, ApiError> {
    let tasks = app.orchestrator.client_tasks(&caller.client.id).await.map_err(store_error)?;
    Ok(Json(TaskList { tasks: tasks.into_iter().map(|task| TaskView::new(task, &app)).collect() }))
}

pub(super) async fn get(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Id(id): Id,
) -> Result<Response, ApiError> {
    let task = app.orchestrator.client_task(&caller.client.id, &id).await.map_err(store_error)?;
    let task = TaskView::new(task.ok_or_else(not_found)?, &app);
    let bytes = held_body::to_json_bytes(&task)?;
    let permit = app.admission.admit_response(&caller.client.id, bytes.len())?;
    Ok(held_body::json(StatusCode::OK, bytes, permit))
}

pub(super) async fn delete(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Id(id): Id,
) -> Result<(StatusCode, Json<TaskView>), ApiError> {
    match app.orchestrator.cancel_task(&caller.client.id, &id).await.map_err(store_error)? {
        TaskCancellation::Requested(task) => Ok((StatusCode::ACCEPTED, Json(TaskView::new(task, &app)))),
        TaskCancellation::Ended(task) => Ok((StatusCode::OK, Json(TaskView::new(task, &app)))),
        TaskCancellation::NotFound => Err(not_found()),
    }
}

fn not_found() -> ApiError {
    ApiError::not_found("Task not found.")
}

fn store_error(error: StoreError) -> ApiError {
    ApiError::internal("store read failed", &error)
}

fn example() -> Value {
    json!({
        "id": "task_018f0c2b7a100a1b2c3d4e5f6071", "sessionId": "ses_1", "callId": "call_1", "tool": "report_build",
        "mode": "text", "status": "running", "startedMs": 1_760_000_000_000_u64, "deadlineMs": 1_760_000_600_000_u64,
        "progress": "2 of 5 chapters",
    })
}

pub(super) fn describe_list() -> Operation {
    Operation::new("listTasks", "chat", "List background tasks")
        .description(
            "Calls of the caller's own sessions that go on in the background, and those that have ended.",
        )
        .json_response::<TaskList>(200, "The tasks.", Some(json!({ "tasks": [example()] })))
}

pub(super) fn describe() -> Operation {
    Operation::new("getTask", "chat", "Get a background task")
        .path_id("The task: `meta.backgroundTaskId` of the call's answer.", "task_1")
        .json_response::<TaskView>(200, "The task, with what it came to.", Some(example()))
        .errors(&[404])
}

pub(super) fn describe_delete() -> Operation {
    Operation::new("cancelTask", "chat", "Cancel a background task")
        .description("A task that runs is told to stop, and has stopped within a second.")
        .path_id("The task: `meta.backgroundTaskId` of the call's answer.", "task_1")
        .json_response::<TaskView>(202, "The task was told to stop.", Some(example()))
        .json_response::<TaskView>(200, "The task had ended.", None)
        .errors(&[404])
}
