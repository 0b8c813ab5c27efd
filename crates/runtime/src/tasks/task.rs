//! One task while it runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quarterdeck_contracts::ToolResponse;
use quarterdeck_contracts::handler::{CancelReason, CancellationToken};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::slots::TaskSlot;
use crate::ids::random_hex;
use crate::ledger::Entry;
use crate::session::SessionCore;

/// How long a handler that is told to stop may take until it is stopped.
const STOP_GRACE: Duration = Duration::from_millis(500);

/// A call that goes on after it was answered, or may come to.
pub(crate) struct Task {
    /// Grows with time, and cannot be guessed.
    pub(crate) id: Arc<str>,
    pub(crate) client: Arc<str>,
    pub(crate) session_id: Arc<str>,
    pub(crate) call_id: Arc<str>,
    pub(crate) tool: Arc<str>,
    /// Cancelled when the task should stop.
    pub(crate) cancellation: CancellationToken,
    /// The answer of the call: that it goes on.
    pub(crate) started_response: Arc<ToolResponse>,
    pub(crate) times: TaskTimes,
    /// Held while the call becomes a task, so that its end and its start are stored in their order.
    pub(crate) phase: tokio::sync::Mutex<TaskPhase>,
    latest: Mutex<LatestProgress>,
    /// Whether the store knows what it came to.
    is_end_stored: AtomicBool,
    /// Whether its progress will be written for other nodes.
    is_progress_scheduled: AtomicBool,
    /// Wakes those who wait for its end, when it is not among the running ones any more.
    pub(super) ended: Notify,
    _slot: TaskSlot,
}

/// When a task began and when it must end, in milliseconds since 1970, and after how long its call becomes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskTimes {
    pub(crate) started_ms: u64,
    pub(crate) deadline_ms: u64,
    pub(crate) background_after: Duration,
}

/// Whether the call waits for its handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskPhase {
    /// The call still waits.
    Inline,
    /// The call was answered, and the store knows the task.
    Background,
    /// The handler has ended while the call waited for it.
    EndedInline,
}

#[derive(Debug, Default)]
struct LatestProgress {
    text: Option<String>,
    partial: Option<Value>,
}

impl Task {
    pub(crate) fn new(
        core: &SessionCore,
        entry: &Entry,
        times: TaskTimes,
        slot: TaskSlot,
    ) -> Option<Arc<Self>> {
        let id: Arc<str> = format!("task_{:012x}{}", times.started_ms, random_hex(8)?).into();
        Some(Arc::new(Self::with_id(core, entry, id, times, slot)))
    }

    /// A task that the store knows by its id.
    pub(crate) fn with_id(
        core: &SessionCore,
        entry: &Entry,
        id: Arc<str>,
        times: TaskTimes,
        slot: TaskSlot,
    ) -> Self {
        let data = json!({
            "status": "running",
            "backgroundTaskId": id,
            "message": "This goes on in the background. Tell the user that it has been started, and go on; you will \
                        be told the outcome. Do not call it again for the same purpose.",
        });
        let mut started_response = core.snapshot.succeed(&entry.tool, data, core.now());
        started_response.meta.background_task_id = Some(id.to_string());
        let phase = match times.background_after.is_zero() {
            true => TaskPhase::Background,
            false => TaskPhase::Inline,
        };
        Self {
            id,
            client: core.client.clone(),
            session_id: core.id.clone(),
            call_id: entry.call_id.clone(),
            tool: entry.tool.clone(),
            cancellation: CancellationToken::default(),
            started_response: Arc::new(started_response),
            times,
            phase: tokio::sync::Mutex::new(phase),
            latest: Mutex::default(),
            is_end_stored: AtomicBool::new(false),
            is_progress_scheduled: AtomicBool::new(false),
            ended: Notify::new(),
            _slot: slot,
        }
    }

    /// Whether its call does not wait at all.
    pub(crate) fn starts_in_background(&self) -> bool {
        self.times.background_after.is_zero()
    }

    pub(crate) fn mark_end_stored(&self) {
        self.is_end_stored.store(true, Ordering::Release);
    }

    pub(crate) fn is_end_stored(&self) -> bool {
        self.is_end_stored.load(Ordering::Acquire)
    }

    /// The handler has ended. Whether it did so in the background; if not, the call will not become a task any more.
    pub(crate) async fn end(&self) -> bool {
        let mut phase = self.phase.lock().await;
        if *phase == TaskPhase::Inline {
            *phase = TaskPhase::EndedInline;
        }
        *phase == TaskPhase::Background
    }

    /// Ends when the handler must be stopped: a moment after it was told to. A write that has begun is let finish,
    /// unless its user has cancelled it.
    pub(crate) async fn wait_for_stop(&self, writes: bool) {
        let reason = self.cancellation.cancelled().await;
        if writes && reason != CancelReason::Stopped {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(STOP_GRACE).await;
    }

    pub(crate) fn set_progress(&self, text: &str) {
        self.latest().text = Some(text.to_owned());
    }

    pub(crate) fn set_partial(&self, chunk: &Value) {
        self.latest().partial = Some(chunk.clone());
    }

    /// The latest note on progress, and the latest partial result.
    pub(crate) fn progress(&self) -> (Option<String>, Option<Value>) {
        let latest = self.latest();
        (latest.text.clone(), latest.partial.clone())
    }

    /// `false` if its progress will be written anyway.
    pub(crate) fn schedule_progress(&self) -> bool {
        !self.is_progress_scheduled.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn progress_written(&self) {
        self.is_progress_scheduled.store(false, Ordering::Release);
    }

    fn latest(&self) -> MutexGuard<'_, LatestProgress> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
