//! Calls that may go on after they were answered. The handler runs in a task of its own, which outlives the call; it is
//! executed and recorded like every other.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use quarterdeck_contracts::{Commit, CommitError, ErrorType, Outcome, ToolError};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::call::{CallOutcome, ToolCall};
use super::deliver::{apply_intents, deliver, measure_task};
use super::execute_and_record;
use super::task_rows::{ended_commit, ended_row, started_commit};
use crate::envelope::refusal_error;
use crate::latency::Schedule;
use crate::session::SessionCore;
use crate::tasks::{SlotRefusal, Task, TaskPhase, TaskTimes};

/// When a client that may start no more tasks should try again.
const RETRY_AFTER_MS: u64 = 5_000;

/// A call that ended before it became a task.
type InlineEnd = Option<Box<(ToolCall, CallOutcome)>>;

/// Gives a call of a tool that may run in the background its task, within the limits. Nested calls are waited for: it is
/// the outer call that may go on.
pub(super) fn prepare(core: &SessionCore, call: &mut ToolCall) -> Result<(), ToolError> {
    let Some(tool) = core.snapshot.find(&call.entry.tool) else { return Ok(()) };
    let metadata = tool.metadata();
    let Some(after_ms) = metadata.effective_background_after_ms() else { return Ok(()) };
    // It is known to take longer than that, so nothing is gained by waiting.
    let after_ms = if call.schedule == Some(Schedule::Background) { 0 } else { after_ms };
    if !call.ancestors.is_empty() || call.task.is_some() {
        return Ok(());
    }
    let policy = &core.shared.policy;
    let slots = &core.shared.tasks.slots;
    let slot = slots
        .take(&core.client, policy.max_tasks_per_client, policy.max_tasks)
        .map_err(|refusal| too_many(refusal, policy.max_tasks_per_client))?;
    let started_ms = core.now_ms();
    let times = TaskTimes {
        started_ms,
        deadline_ms: started_ms + metadata.effective_timeout_ms(),
        background_after: Duration::from_millis(after_ms),
    };
    let task = Task::new(core, &call.entry, times, slot);
    call.task =
        Some(task.ok_or_else(|| ToolError::new(ErrorType::Internal, "There are no random numbers."))?);
    Ok(())
}

fn too_many(refusal: SlotRefusal, max_per_client: usize) -> ToolError {
    let message = match refusal {
        SlotRefusal::Client => format!("{max_per_client} background tasks are running already."),
        SlotRefusal::All => "The server runs as many background tasks as it may.".to_owned(),
    };
    ToolError {
        retry_after_ms: Some(RETRY_AFTER_MS),
        ..refusal_error(ErrorType::RateLimit, message)
            .retryable()
            .with_suggestion("Tell the user that earlier tasks have to end, or be cancelled, first.")
    }
}

/// Runs a call for which everything is reserved. It is answered when its handler ends or when it becomes a task,
/// whichever comes first.
pub(super) async fn run_detached(core: &Arc<SessionCore>, call: ToolCall, task: Arc<Task>, started: Instant) {
    let waiting = call.to_answer();
    let mut execution = tokio::spawn(execute_detached(core.clone(), call, task.clone(), started));
    if task.starts_in_background() {
        core.shared.tasks.add(&task);
        return answer_started(core, waiting, &task, started);
    }
    loop {
        match wait_inline(&mut execution, &waiting, task.times.background_after).await {
            Waited::Ended(Some(ended)) => {
                let (call, outcome) = *ended;
                return deliver(core, call, outcome, started.elapsed());
            }
            // It has reported its end itself, or was lost with the runtime.
            Waited::Ended(None) => return,
            Waited::Cancelled => {
                execution.abort();
                let outcome = CallOutcome::cancelled(core, &waiting);
                return deliver(core, waiting, outcome, started.elapsed());
            }
            Waited::TimeIsUp => match move_to_background(core, &waiting, &task).await {
                Ok(true) => return answer_started(core, waiting, &task, started),
                Ok(false) => {}
                Err(error) => {
                    // What is not stored is not promised, so the call goes on waiting.
                    tracing::error!(session = %core.id, error = %error, "task could not be stored");
                }
            },
        }
    }
}

/// Runs a task of an earlier process again.
pub(crate) fn resume_task(core: &Arc<SessionCore>, call: ToolCall) {
    let Some(task) = call.task.clone() else { return };
    core.shared.tasks.add(&task);
    tokio::spawn(execute_detached(core.clone(), call, task, Instant::now()));
}

enum Waited {
    Ended(InlineEnd),
    /// It does not write, so it stops.
    Cancelled,
    TimeIsUp,
}

async fn wait_inline(execution: &mut JoinHandle<InlineEnd>, call: &ToolCall, time: Duration) -> Waited {
    let cancelled = async {
        if call.entry.writes {
            std::future::pending::<()>().await;
        }
        call.entry.cancellation().cancelled().await;
    };
    let other = async {
        match select(pin!(cancelled), pin!(tokio::time::sleep(time))).await {
            Either::Left(_) => Waited::Cancelled,
            Either::Right(_) => Waited::TimeIsUp,
        }
    };
    match select(execution, pin!(other)).await {
        Either::Left((ended, _)) => Waited::Ended(ended.unwrap_or(None)),
        Either::Right((waited, _)) => waited,
    }
}

/// Makes a call that has taken long a task; `false` if it has ended meanwhile.
async fn move_to_background(
    core: &SessionCore,
    call: &ToolCall,
    task: &Arc<Task>,
) -> Result<bool, CommitError> {
    let mut phase = task.phase.lock().await;
    if *phase != TaskPhase::Inline {
        return Ok(false);
    }
    core.commit(started_commit(core, call, task, Commit::default())).await?;
    *phase = TaskPhase::Background;
    core.shared.tasks.add(task);
    Ok(true)
}

fn answer_started(core: &Arc<SessionCore>, call: ToolCall, task: &Task, started: Instant) {
    core.audit_session(
        "task_started",
        json!({ "taskId": task.id, "toolId": task.tool, "callId": task.call_id, "turnId": call.entry.turn }),
    );
    deliver(core, call, CallOutcome::continued(task), started.elapsed());
}

/// Runs the handler and records what it came to. Returns the call if it still waits.
async fn execute_detached(
    core: Arc<SessionCore>,
    mut call: ToolCall,
    task: Arc<Task>,
    started: Instant,
) -> InlineEnd {
    let steps = AssertUnwindSafe(execute_and_record(&core, &mut call, started)).catch_unwind();
    let outcome = steps.await.unwrap_or_else(|_| CallOutcome::panicked(&core, &call));
    if !task.end().await {
        return Some(Box::new((call, outcome)));
    }
    finish(&core, &mut call, &task, outcome, started.elapsed()).await;
    None
}

/// Reports the end of a task.
async fn finish(
    core: &Arc<SessionCore>,
    call: &mut ToolCall,
    task: &Task,
    outcome: CallOutcome,
    elapsed: Duration,
) {
    let CallOutcome { mut response, is_executed, block_message, .. } = outcome;
    Arc::make_mut(&mut response).meta.background_task_id = Some(task.id.to_string());
    if !task.is_end_stored()
        && let Err(error) = core.commit(ended_commit(core, call, task, &response)).await
    {
        tracing::error!(session = %core.id, task = %task.id, error = %error, "end of task was not stored");
    }
    let row = ended_row(core, call, task, &response);
    let transitions = {
        let mut data = core.lock();
        let transitions = match is_executed {
            true => apply_intents(core, &mut data, &call.entry, &response, block_message.as_deref()),
            false => Vec::new(),
        };
        core.add_task_outcome(&mut data, row);
        // The user has as long to come back as after any other sign of life.
        data.seen_ms = core.now_ms();
        data.unsaved.session = true;
        core.save_soon(&mut data);
        transitions
    };
    core.shared.tasks.remove(task);
    core.shared.announce_task_end(task);
    if is_executed {
        measure_task(core, &call.entry, &response, elapsed);
    }
    call.record_end(core, &response);
    let error = match &response.outcome {
        Outcome::Success(_) => None,
        Outcome::Failure(error) => Some(error.kind),
    };
    core.audit_session(
        "task_ended",
        json!({
            "taskId": task.id, "toolId": task.tool, "callId": task.call_id, "ok": error.is_none(), "errorType": error,
            "duration": elapsed.as_millis() as u64,
        }),
    );
    core.audit_transitions(transitions);
    core.release_if_wanted();
    core.prune_tasks(task).await;
}
