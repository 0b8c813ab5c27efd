//! Tasks of other nodes: their progress, their end, and stopping them.
//!
//! The node that runs a task writes what it says of its progress to a row of its own, once a second at the most. To stop it,
//! another node writes a row, which the running one reads.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::handler::CancelReason;
use quarterdeck_contracts::{Commit, CommitError, StoreError, Table};
use serde_json::{Value, json};

use super::topic;
use crate::orchestrator::Orchestrator;
use crate::session::SessionCore;
use crate::shared::Shared;
use crate::tasks::{Task, TaskStatus, TaskSummary};

/// How often the progress of a task is written.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// How long a request to stop a task is kept beyond the task's deadline.
const REQUEST_GRACE_MS: u64 = 60_000;

// No client has an id with a tilde, so these are no tasks of one.

fn progress_key(client: &str, task: &str) -> String {
    format!("~progress/{client}/{task}")
}

fn cancellation_key(client: &str, task: &str) -> String {
    format!("~cancel/{client}/{task}")
}

impl SessionCore {
    /// Writes what a task says of its progress, soon, for the other nodes.
    pub(crate) fn share_progress(self: &Arc<Self>, task: &Arc<Task>) {
        if !self.shared.events.is_following() || !task.schedule_progress() {
            return;
        }
        let (core, task) = (Arc::downgrade(self), Arc::downgrade(task));
        tokio::spawn(async move {
            tokio::time::sleep(PROGRESS_INTERVAL).await;
            let (Some(core), Some(task)) = (core.upgrade(), task.upgrade()) else { return };
            task.progress_written();
            if core.shared.tasks.find(&task.id).is_none() {
                return;
            }
            let (text, partial) = task.progress();
            let value = json!({ "progress": text, "partial": partial });
            let key = progress_key(&task.client, &task.id);
            let expires = Some(task.times.deadline_ms + REQUEST_GRACE_MS);
            let commit = Commit::default().put_until(Table::Tasks, key, value, expires);
            if let Err(error) = core.shared.store.queue(commit) {
                tracing::warn!(task = %task.id, error = %error, "progress of task was not stored");
            }
        });
    }
}

impl Shared {
    /// A task has ended: the rows beside its own go, and the other nodes are told.
    pub(crate) fn announce_task_end(&self, task: &Task) {
        if self.events.is_following() {
            let rows = Commit::default()
                .delete(Table::Tasks, progress_key(&task.client, &task.id))
                .delete(Table::Tasks, cancellation_key(&task.client, &task.id));
            if let Err(error) = self.store.queue(rows) {
                tracing::warn!(task = %task.id, error = %error, "rows of an ended task were not removed");
            }
        }
        self.announce(topic::TASK, format!("{}/{}", task.client, task.id));
    }
}

impl Orchestrator {
    /// Fills in what a task of another node says of its progress.
    pub(crate) async fn add_remote_progress(&self, summary: &mut TaskSummary) -> Result<(), StoreError> {
        let shared = self.shared();
        let is_remote = summary.status == TaskStatus::Running && shared.tasks.find(&summary.id).is_none();
        if !is_remote || !shared.events.is_following() {
            return Ok(());
        }
        let key = progress_key(&summary.client_id, &summary.id);
        if let Some(row) = self.store().get(Table::Tasks, &key).await? {
            summary.progress = row.value["progress"].as_str().map(str::to_owned);
            summary.partial = row.value.get("partial").filter(|partial| !partial.is_null()).cloned();
        }
        Ok(())
    }

    /// Asks the node that runs a task to stop it; `false` where there are no other nodes.
    pub(crate) async fn request_task_stop(&self, task: &TaskSummary) -> Result<bool, StoreError> {
        if !self.shared().events.is_following() {
            return Ok(false);
        }
        let key = cancellation_key(&task.client_id, &task.id);
        let expires = Some(task.deadline_ms + REQUEST_GRACE_MS);
        let commit = Commit::default().put_until(Table::Tasks, key, Value::Bool(true), expires);
        self.store().commit(commit).await.map_err(CommitError::into_store_error)?;
        self.shared().announce(topic::TASK, format!("{}/{}", task.client_id, task.id));
        Ok(true)
    }

    /// Waits until a task that another node runs has ended, by what the store says.
    pub(crate) async fn remote_task_ended(&self, client: &str, id: &str) {
        let events = &self.shared().events;
        while events.is_following() {
            let changed = events.task_changed.notified();
            match self.client_task(client, id).await {
                Ok(Some(task)) if task.status == TaskStatus::Running => changed.await,
                Ok(_) => return,
                Err(error) => {
                    tracing::warn!(task = id, error = %error, "task of another node could not be read");
                    changed.await;
                }
            }
        }
    }

    pub(super) async fn apply_task_change(&self, key: &str) -> Result<usize, StoreError> {
        self.shared().events.task_changed.notify_waiters();
        let Some((_, id)) = key.split_once('/') else { return Ok(0) };
        match self.shared().tasks.find(id) {
            Some(task) => self.stop_if_requested(&task).await,
            None => Ok(0),
        }
    }

    pub(super) async fn apply_all_task_changes(&self) -> Result<usize, StoreError> {
        self.shared().events.task_changed.notify_waiters();
        let mut found = 0;
        for task in self.shared().tasks.all() {
            found += self.stop_if_requested(&task).await?;
        }
        Ok(found)
    }

    async fn stop_if_requested(&self, task: &Task) -> Result<usize, StoreError> {
        if task.cancellation.is_cancelled() {
            return Ok(0);
        }
        let key = cancellation_key(&task.client, &task.id);
        let is_requested = self.store().get(Table::Tasks, &key).await?.is_some();
        if is_requested {
            task.cancellation.cancel(CancelReason::Stopped);
        }
        Ok(usize::from(is_requested))
    }
}
