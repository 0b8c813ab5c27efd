//! What the store keeps of a task.

use std::sync::Arc;

use quarterdeck_contracts::{Commit, ErrorType, Mode, Outcome, Table, ToolResponse};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::task::Task;
use crate::gates::ClientFacts;
use crate::ledger::{CallIdentity, Entry};
use crate::session::SessionCore;
use crate::shared::Shared;

/// How a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    Running,
    Done,
    Failed,
    Cancelled,
    /// A restart has interrupted it, and whether it was done is not known.
    Unknown,
}

impl TaskStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }

    fn of(response: &ToolResponse) -> Self {
        match &response.outcome {
            Outcome::Success(_) => Self::Done,
            Outcome::Failure(error) if error.kind == ErrorType::Cancelled => Self::Cancelled,
            Outcome::Failure(error)
                if error.details.as_ref().is_some_and(|details| details["outcome"] == "unknown") =>
            {
                Self::Unknown
            }
            Outcome::Failure(_) => Self::Failed,
        }
    }
}

/// A task, as the store keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskRow {
    pub(crate) id: String,
    pub(crate) client_id: String,
    pub(crate) session_id: String,
    pub(crate) mode: Mode,
    pub(crate) status: TaskStatus,
    pub(crate) call: TaskCall,
    pub(crate) started_ms: u64,
    pub(crate) deadline_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended_ms: Option<u64>,
    /// The node that runs it and the process of that, where several share the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) runner: Option<TaskRunner>,
    /// How often its handler was started.
    pub(crate) starts: u32,
    /// Absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) response: Option<ToolResponse>,
    /// Whether the model has been told of the outcome.
    #[serde(default)]
    pub(crate) is_told: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskRunner {
    pub(crate) node: String,
    pub(crate) boot: String,
}

impl TaskRunner {
    /// This process, if it is one of several nodes.
    pub(crate) fn this(shared: &Shared) -> Option<Self> {
        let node = shared.node.as_ref()?;
        Some(Self { node: node.name.clone(), boot: node.boot.clone() })
    }
}

/// What is needed to run the call again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskCall {
    pub(crate) call_id: String,
    pub(crate) tool: String,
    pub(crate) tool_version: String,
    pub(crate) content: String,
    pub(crate) turn: u64,
    pub(crate) writes: bool,
    /// As the handler gets them.
    pub(crate) args: Value,
    /// What was known about the client, whose sign-in the handler may depend on.
    pub(crate) client: ClientFacts,
}

/// A task, for lists.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskSummary {
    pub id: String,
    pub client_id: String,
    pub session_id: String,
    pub call_id: String,
    pub tool: String,
    pub mode: Mode,
    pub status: TaskStatus,
    /// When it began, in milliseconds since 1970.
    pub started_ms: u64,
    /// When it is stopped at the latest.
    pub deadline_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// What it says of its progress while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// Its latest partial result while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial: Option<Value>,
    /// What it came to, where one task is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<ToolResponse>,
}

/// How the keys of a client's tasks begin.
pub(crate) fn client_prefix(client: &str) -> String {
    format!("{client}/")
}

impl TaskRow {
    pub(crate) fn running(core: &SessionCore, task: &Task, entry: &Entry, args: &Value) -> Self {
        let tool = core.snapshot.find(&entry.tool);
        Self {
            id: task.id.to_string(),
            client_id: core.client.to_string(),
            session_id: core.id.to_string(),
            mode: core.mode,
            status: TaskStatus::Running,
            call: TaskCall {
                call_id: entry.call_id.to_string(),
                tool: entry.tool.to_string(),
                tool_version: tool.map_or_else(String::new, |tool| tool.metadata().version.clone()),
                content: entry.content.to_string(),
                turn: entry.turn,
                writes: entry.writes,
                args: args.clone(),
                client: (*core.lock().client).clone(),
            },
            started_ms: task.times.started_ms,
            deadline_ms: task.times.deadline_ms,
            ended_ms: None,
            runner: TaskRunner::this(&core.shared),
            starts: 1,
            response: None,
            is_told: false,
        }
    }

    /// The same with its outcome. The arguments are not needed any more.
    pub(crate) fn ended(mut self, response: &ToolResponse, now_ms: u64) -> Self {
        self.status = TaskStatus::of(response);
        self.response = Some(response.clone());
        self.ended_ms = Some(now_ms);
        self.call.args = Value::Null;
        self.call.client = ClientFacts::default();
        self
    }

    pub(crate) fn key(&self) -> String {
        format!("{}{}", client_prefix(&self.client_id), self.id)
    }

    pub(crate) fn put(&self, commit: Commit, expires_ms: Option<u64>) -> Commit {
        commit.put_until(Table::Tasks, self.key(), json!(self), expires_ms)
    }

    /// The call in the ledger of its session.
    pub(crate) fn entry(&self) -> Arc<Entry> {
        Entry::new(CallIdentity {
            call_id: self.call.call_id.as_str().into(),
            provider_id: None,
            nth: 0,
            tool: self.call.tool.as_str().into(),
            content: self.call.content.as_str().into(),
            turn: self.call.turn,
            writes: self.call.writes,
        })
    }

    /// For lists, with what the task says of itself while it runs.
    pub(crate) fn summary(self, running: Option<&Task>) -> TaskSummary {
        let (progress, partial) = running.map(Task::progress).unwrap_or_default();
        TaskSummary {
            id: self.id,
            client_id: self.client_id,
            session_id: self.session_id,
            call_id: self.call.call_id,
            tool: self.call.tool,
            mode: self.mode,
            status: self.status,
            started_ms: self.started_ms,
            deadline_ms: self.deadline_ms,
            ended_ms: self.ended_ms,
            progress,
            partial,
            response: self.response,
        }
    }
}
