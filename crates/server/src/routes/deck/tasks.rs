//! `/api/deck/tasks`: the background tasks of all clients, and cancelling one.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use quarterdeck_contracts::Mode;
use quarterdeck_runtime::{TaskCancellation, TaskStatus, TaskSummary, find_stored_task};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{Operator, Shared, check_id, operation, store_error};
use crate::error::ApiError;
use crate::input::Id;
use crate::routes::openapi::Operation;

const MAX_TASKS: usize = 200;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeckTaskList {
    /// Those that run first, then the latest.
    tasks: Vec<DeckTask>,
    /// Whether these are all.
    is_complete: bool,
}

/// What a task says and comes to is its user's, and not shown.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeckTask {
    id: String,
    client_id: String,
    session_id: String,
    call_id: String,
    tool: String,
    #[schemars(extend("enum" = ["text", "voice"]))]
    #[schemars(with = "String")]
    mode: Mode,
    #[schemars(extend("enum" = ["running", "done", "failed", "cancelled", "unknown"]))]
    #[schemars(with = "String")]
    status: TaskStatus,
    started_ms: u64,
    deadline_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_ms: Option<u64>,
}

impl From<TaskSummary> for DeckTask {
    fn from(task: TaskSummary) -> Self {
        Self {
            id: task.id,
            client_id: task.client_id,
            session_id: task.session_id,
            call_id: task.call_id,
            tool: task.tool,
            mode: task.mode,
            status: task.status,
            started_ms: task.started_ms,
            deadline_ms: task.deadline_ms,
            ended_ms: task.ended_ms,
        }
    }
}

pub(super) async fn list(State(app): Shared, _: Operator) -> Result<Json<DeckTaskList>, ApiError> {
    let list = app.orchestrator.all_tasks(MAX_TASKS).await.map_err(|error| store_error(&error))?;
    let tasks = list.tasks.into_iter().map(DeckTask::from).collect();
    Ok(Json(DeckTaskList { tasks, is_complete: list.is_complete }))
}

pub(super) async fn delete(
    State(app): Shared,
    operator: Operator,
    Id(id): Id,
) -> Result<StatusCode, ApiError> {
    check_id(&id)?;
    let found = find_stored_task(&**app.orchestrator.store(), &id).await;
    let not_found = || ApiError::not_found("There is no such task, or it has ended.");
    let task = found.map_err(|error| store_error(&error))?.ok_or_else(not_found)?;
    let cancelled = app.orchestrator.cancel_task(&task.client_id, &id).await;
    match cancelled.map_err(|error| store_error(&error))? {
        TaskCancellation::Requested(task) => {
            let details = json!({ "taskId": id, "toolId": task.tool, "clientId": task.client_id });
            operator.record(&app, "cancel_task", details);
            Ok(StatusCode::NO_CONTENT)
        }
        TaskCancellation::Ended(_) | TaskCancellation::NotFound => Err(not_found()),
    }
}

pub(super) fn describe_list() -> Operation {
    operation("listDeckTasks", "List background tasks").json_response::<DeckTaskList>(
        200,
        "Those that run are first, then the latest.",
        None,
    )
}

pub(super) fn describe_delete() -> Operation {
    operation("cancelDeckTask", "Cancel a background task")
        .path_id("The task.", "task_1")
        .response(204, "The task was told to stop.", Vec::new())
        .errors(&[404])
}
