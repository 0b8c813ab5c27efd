//! What a restart does with tasks that were running: it resumes those that may run twice, and reports the others.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{Commit, CommitError, ErrorType, StoreError, Table, ToolError};
use serde_json::json;

use super::row::{TaskRow, TaskRunner, TaskStatus};
use super::task::{Task, TaskTimes};
use crate::envelope::{cancelled, outcome_unknown, refusal_error};
use crate::orchestrator::{Orchestrator, SessionError, ToolSource};
use crate::ownership::Claim;
use crate::pipeline::{ToolCall, resume_task};
use crate::recovery::restore;
use crate::registry::{LoadedTool, Snapshot};
use crate::session::{SessionCore, SessionRow, session_key};
use crate::store_keys::all_rows;

/// How often the handler of one task is started. One that takes the process down must not do so for ever.
const MAX_STARTS: u32 = 3;

/// What came of the tasks that were running when the process before this one ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecoveredTasks {
    /// Run again.
    pub resumed: usize,
    /// Reported as interrupted.
    pub lost: usize,
}

/// A task that may be run again, with its session and the tools of that.
struct Resumable {
    row: TaskRow,
    session: SessionRow,
    snapshot: Arc<Snapshot>,
}

impl Orchestrator {
    /// Resumes or reports the tasks of an earlier process. To be called once, before there are sessions; where nodes share the
    /// store, every now and then: the tasks of nodes that are gone are among them.
    pub async fn recover_tasks(
        &self,
        tools: impl Into<ToolSource<'_>>,
    ) -> Result<RecoveredTasks, StoreError> {
        let tools = tools.into();
        let rows = all_rows(&**self.store(), Table::Tasks, "").await?;
        let rows = rows.into_iter().filter_map(|(_, value)| serde_json::from_value::<TaskRow>(value).ok());
        let running = rows.filter(|row| row.status == TaskStatus::Running);
        let mut recovered = RecoveredTasks::default();
        let mut resumable = Vec::new();
        for row in running.filter(|row| self.shared().tasks.find(&row.id).is_none()) {
            let Some(fence) = self.may_recover(row.runner.as_ref(), &row.session_id).await? else { continue };
            match self.find_resumable(row, &tools).await? {
                Ok(found) => resumable.push(found),
                Err((row, error)) => {
                    let is_reported = self.report_lost(*row, &tools.newest(), error, fence).await;
                    recovered.lost += usize::from(is_reported);
                }
            }
        }
        // Afterwards, so that a session that is brought back finds what its lost tasks came to.
        for found in resumable {
            match self.resume_task(found).await? {
                true => recovered.resumed += 1,
                false => recovered.lost += 1,
            }
        }
        Ok(recovered)
    }

    /// The session of a task that may be run again, or why it may not.
    async fn find_resumable(
        &self,
        row: TaskRow,
        tools: &ToolSource<'_>,
    ) -> Result<Result<Resumable, (Box<TaskRow>, ToolError)>, StoreError> {
        let session = self.store().get(Table::Sessions, &session_key(&row.session_id)).await?;
        let session = session.and_then(|row| serde_json::from_value::<SessionRow>(row.value).ok());
        let Some(session) = session.filter(|session| session.state.is_active) else {
            let error = interrupted(&row, cancelled(&row.call.tool));
            return Ok(Err((Box::new(row), error)));
        };
        // With the tools that its session is pinned to, or not at all.
        let snapshot = tools.pinned(&session).filter(|snapshot| {
            snapshot.find(&row.call.tool).is_some_and(|tool| may_run_again(&row, tool, self.now_ms()))
        });
        Ok(match snapshot {
            Some(snapshot) => Ok(Resumable { row, session, snapshot }),
            None => {
                let error = interrupted(&row, lost(&row.call.tool));
                Err((Box::new(row), error))
            }
        })
    }

    /// Stores that a task was lost; `false` if another node has it. `fence` is what must be so for that.
    async fn report_lost(&self, row: TaskRow, snapshot: &Snapshot, error: ToolError, fence: Commit) -> bool {
        tracing::warn!(
            task = row.id,
            tool = row.call.tool,
            session = row.session_id,
            "task interrupted by a restart"
        );
        let mut response = snapshot.refuse(&row.call.tool, error, self.now());
        response.meta.background_task_id = Some(row.id.clone());
        let row = row.ended(&response, self.now_ms());
        let expires = self.now_ms() + self.policy().retention.as_millis() as u64;
        let live = self.shared().find(&row.session_id);
        let commit = row.put(fence, Some(expires));
        let stored = match &live {
            Some(core) => core.commit(commit).await,
            None => self.store().commit(commit).await,
        };
        match stored {
            Ok(_) => {}
            Err(CommitError::Conflict { .. }) => return false,
            Err(error) => tracing::error!(task = row.id, error = %error, "end of task was not stored"),
        }
        if let Some(core) = live {
            core.add_task_outcome(&mut core.lock(), row);
        }
        true
    }

    /// Runs a task again in its session; `false` if its session could not be brought back.
    async fn resume_task(&self, found: Resumable) -> Result<bool, StoreError> {
        let Resumable { mut row, session, snapshot } = found;
        let Some(core) = self.session_of(&row, session, &snapshot).await? else { return Ok(false) };
        row.starts += 1;
        row.runner = TaskRunner::this(self.shared());
        if let Err(error) = core.commit(row.put(Commit::default(), core.keep_until())).await {
            tracing::error!(task = row.id, error = %error, "task was not resumed");
            return Ok(false);
        }
        let slot = self.shared().tasks.slots.take_again(&core.client);
        let times = TaskTimes {
            started_ms: row.started_ms,
            deadline_ms: row.deadline_ms,
            background_after: Duration::ZERO,
        };
        let entry = row.entry();
        let id = row.id.as_str().into();
        let task = Arc::new(Task::with_id(&core, &entry, id, times, slot));
        core.audit_session(
            "task_resumed",
            json!({ "taskId": row.id, "toolId": row.call.tool, "callId": row.call.call_id, "starts": row.starts }),
        );
        resume_task(&core, ToolCall::resumed(&core, entry, row.call.args, task));
        Ok(true)
    }

    async fn session_of(
        &self,
        row: &TaskRow,
        session: SessionRow,
        snapshot: &Arc<Snapshot>,
    ) -> Result<Option<Arc<SessionCore>>, StoreError> {
        let id = row.session_id.as_str();
        let _bringing_back = self.bring_back(id).await;
        if let Some(core) = self.shared().find(id) {
            return Ok(Some(core));
        }
        let claim = match self.shared().node {
            None => Claim::alone(session),
            Some(_) => match self.claim(id, None, |_| Ok(())).await {
                Ok(claim) => claim,
                Err(SessionError::Store(error)) => return Err(error),
                Err(_) => return Ok(None),
            },
        };
        let client = Arc::new(row.call.client.clone());
        let Claim { row, lease, turn } = claim;
        let core = SessionCore::new(&row, id.into(), snapshot.clone(), self.shared().clone(), client, lease);
        restore(&core, row.notes.clone(), turn.as_ref()).await?;
        // It is here for its task alone.
        core.want_release();
        Ok(Some(self.register(core).0.core))
    }
}

fn may_run_again(row: &TaskRow, tool: &LoadedTool, now_ms: u64) -> bool {
    let metadata = tool.metadata();
    metadata.idempotent
        && metadata.version == row.call.tool_version
        && row.starts < MAX_STARTS
        && row.deadline_ms > now_ms
        && tool.parameters.admit(&mut row.call.args.clone()).is_ok()
}

/// What is said of a task that a restart has interrupted. A write may have been done.
fn interrupted(row: &TaskRow, if_it_reads: ToolError) -> ToolError {
    if row.call.writes { outcome_unknown(&row.call.tool) } else { if_it_reads }
}

fn lost(tool: &str) -> ToolError {
    let message = format!("{tool} was interrupted by a restart of the server. It changes nothing.");
    refusal_error(ErrorType::Transient, message)
        .retryable()
        .with_suggestion("Call it again if it is still wanted.")
}
