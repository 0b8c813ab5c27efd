//! Tools that go on in the background, as tasks of the protocol.
//!
//! Tasks are the orchestrator's: they outlive the connection, and their limits and records are its own. A client that
//! knows tasks gets a handle; for the others the call waits.

use std::time::Duration;

use jiff::Timestamp;
use quarterdeck_contracts::ToolResponse;
use quarterdeck_runtime::{Answer, TaskStatus, TaskSummary};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolResponse, CallToolResult, ContentBlock, CreateTaskResult, DetailedTask, ErrorData, GetTaskResult,
    JsonObject, Task, TaskPayload,
};
use rmcp::service::RequestContext;
use serde_json::Value;

use crate::call::RunningCall;
use crate::handler::McpHandler;
use crate::result;
use crate::server::Shared;

/// How often a client should ask.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long a client that stops a task waits for what it came to.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a name may be that is looked up.
const MAX_ID_BYTES: usize = 128;

impl McpHandler {
    /// Hands over the answer of a call: as a task if it goes on and its client knows tasks; otherwise what it came to.
    pub(crate) async fn conclude(
        &self,
        call: RunningCall,
        answer: Answer,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(id) = answer.response.meta.background_task_id.clone() else {
            return Ok(call.deliver(answer));
        };
        let client = call.session.session().client().to_owned();
        if knows_tasks(&call.context) {
            let Some(task) = self.shared.find_task(&client, &id).await? else {
                return Ok(call.deliver(answer));
            };
            answer.mark_delivered();
            return Ok(CreateTaskResult::new(self.shared.describe(&task)).into());
        }
        Ok(match self.wait_for_task(&call, &client, &id).await? {
            Some(response) => {
                answer.mark_delivered();
                result::of(&response).into()
            }
            None => {
                let result = going_on(&call, &answer, &id);
                answer.mark_delivered();
                result.into()
            }
        })
    }

    /// Waits until a task has ended, within a bound; `None` if it goes on.
    async fn wait_for_task(
        &self,
        call: &RunningCall,
        client: &str,
        id: &str,
    ) -> Result<Option<ToolResponse>, ErrorData> {
        let orchestrator = &self.shared.parts.orchestrator;
        let ended = orchestrator.task_ended(client, id);
        let ended = tokio::time::timeout(self.shared.parts.settings.task_wait, ended);
        tokio::select! {
            _ = call.wait_for(ended) => {}
            () = call.context.ct.cancelled() => {
                // The client takes the call back, and with it the task.
                orchestrator.cancel_task(client, id).await.map_err(|error| store_failed(&error))?;
                let _ = tokio::time::timeout(STOP_TIMEOUT, orchestrator.task_ended(client, id)).await;
            }
        }
        Ok(self.shared.find_task(client, id).await?.and_then(|task| task.response))
    }

    /// `tasks/get`
    pub(crate) async fn task(
        &self,
        id: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let task = self.own_task(id, context).await?;
        let payload = payload(&task)?;
        Ok(GetTaskResult::new(DetailedTask::new(self.shared.describe(&task), payload)))
    }

    /// `tasks/update`. A task of ours never asks for anything: the user was asked before it began. What a client sends all
    /// the same has no question that it answers.
    pub(crate) async fn update(
        &self,
        id: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.own_task(id, context).await.map(drop)
    }

    /// `tasks/cancel`. One that has ended stays as it is.
    pub(crate) async fn stop(&self, id: &str, context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
        let task = self.own_task(id, context).await?;
        let stopped = self.shared.parts.orchestrator.cancel_task(&task.client_id, &task.id).await;
        stopped.map(drop).map_err(|error| store_failed(&error))
    }

    /// A task of the client that asks. Another's is as unknown as one that never was.
    async fn own_task(
        &self,
        id: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<TaskSummary, ErrorData> {
        // The session is looked at so that it lasts while its client asks for its tasks.
        let session = self.session(context).await?.session();
        let task = match id.len() <= MAX_ID_BYTES {
            true => self.shared.find_task(session.client(), id).await?,
            false => None,
        };
        task.ok_or_else(|| ErrorData::invalid_params("There is no such task.", None))
    }
}

impl Shared {
    async fn find_task(&self, client: &str, id: &str) -> Result<Option<TaskSummary>, ErrorData> {
        self.parts.orchestrator.client_task(client, id).await.map_err(|error| store_failed(&error))
    }

    fn describe(&self, task: &TaskSummary) -> Task {
        let status = match task.status {
            TaskStatus::Running => rmcp::model::TaskStatus::Working,
            TaskStatus::Cancelled => rmcp::model::TaskStatus::Cancelled,
            TaskStatus::Done | TaskStatus::Failed | TaskStatus::Unknown => rmcp::model::TaskStatus::Completed,
        };
        let updated_ms = task.ended_ms.unwrap_or(task.started_ms);
        let retention = self.parts.orchestrator.policy().retention;
        let described = Task::new(&*task.id, status, timestamp(task.started_ms), timestamp(updated_ms))
            .with_ttl_ms(retention.as_millis() as u64)
            .with_poll_interval_ms(POLL_INTERVAL.as_millis() as u64);
        match &task.progress {
            Some(progress) => described.with_status_message(progress),
            None => described,
        }
    }
}

/// What a call that goes on is answered with. The data that was promised is not there yet, so a client that was promised
/// some must not look for it.
fn going_on(call: &RunningCall, answer: &Answer, id: &str) -> CallToolResult {
    let name = &answer.name;
    let text = format!(
        "{name} goes on in the background as {id}. Tell the user that it has been started, and do not call it again for \
         the same purpose."
    );
    let content = vec![ContentBlock::text(text)];
    let session = call.session.session();
    let promises_data = session.snapshot().find(name).is_some_and(|tool| tool.metadata().returns.is_some());
    if promises_data { CallToolResult::error(content) } else { CallToolResult::success(content) }
}

/// RFC 3339; what is outside the calendar is the epoch.
fn timestamp(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.unwrap_or(Timestamp::UNIX_EPOCH).to_string()
}

/// What a task has come to. One that has failed is complete as well: its result says so to the model.
fn payload(task: &TaskSummary) -> Result<TaskPayload, ErrorData> {
    match (task.status, &task.response) {
        (TaskStatus::Running, _) => Ok(TaskPayload::Working),
        (TaskStatus::Cancelled, _) => Ok(TaskPayload::Cancelled),
        (_, Some(response)) => Ok(TaskPayload::Completed { result: to_object(response)? }),
        (_, None) => Err(ErrorData::internal_error("What the task came to is not known.", None)),
    }
}

fn to_object(response: &ToolResponse) -> Result<JsonObject, ErrorData> {
    match serde_json::to_value(result::of(response)) {
        Ok(Value::Object(fields)) => Ok(fields),
        _ => Err(ErrorData::internal_error("The result of the task could not be written.", None)),
    }
}

fn knows_tasks(context: &RequestContext<RoleServer>) -> bool {
    context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks())
}

fn store_failed(error: &quarterdeck_contracts::StoreError) -> ErrorData {
    tracing::error!(error = %error, "task could not be looked up");
    ErrorData::internal_error("The task could not be looked up. Try again later.", None)
}
