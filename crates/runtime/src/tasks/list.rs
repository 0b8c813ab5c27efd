//! Lists tasks and cancels them.

use quarterdeck_contracts::handler::CancelReason;
use quarterdeck_contracts::{Commit, Scan, Store, StoreError, Table};

use super::row::{TaskRow, TaskStatus, TaskSummary, client_prefix};
use super::task::Task;
use crate::orchestrator::Orchestrator;
use crate::session::SessionCore;
use crate::store_keys::all_rows;

/// How many ended tasks of a client are kept.
const MAX_ENDED_TASKS: usize = 50;
const SCAN_PAGE_ROWS: usize = 500;
/// How many rows a list of all tasks looks at.
const MAX_SCANNED_ROWS: usize = 20_000;

/// The latest tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskList {
    /// Those that run first, then the latest.
    pub tasks: Vec<TaskSummary>,
    /// Whether these are all.
    pub is_complete: bool,
}

/// What came of cancelling a task.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskCancellation {
    /// It was told to stop, and will have within a second.
    Requested(TaskSummary),
    /// It had ended.
    Ended(TaskSummary),
    NotFound,
}

impl Orchestrator {
    /// The tasks of a client, without what they came to.
    pub async fn client_tasks(&self, client: &str) -> Result<Vec<TaskSummary>, StoreError> {
        let rows = all_rows(&**self.store(), Table::Tasks, &client_prefix(client)).await?;
        let mut tasks = sorted(rows.into_iter().filter_map(|(_, value)| self.summary(value)).collect());
        for task in &mut tasks {
            self.add_remote_progress(task).await?;
        }
        Ok(tasks)
    }

    /// One task of a client, with what it came to.
    pub async fn client_task(&self, client: &str, id: &str) -> Result<Option<TaskSummary>, StoreError> {
        let row = self.store().get(Table::Tasks, &format!("{}{id}", client_prefix(client))).await?;
        let row = row.and_then(|row| serde_json::from_value::<TaskRow>(row.value).ok());
        let Some(row) = row else { return Ok(None) };
        let mut summary = row.summary(self.shared().tasks.find(id).as_deref());
        self.add_remote_progress(&mut summary).await?;
        Ok(Some(summary))
    }

    /// The latest tasks of all clients, without what they came to.
    pub async fn all_tasks(&self, most: usize) -> Result<TaskList, StoreError> {
        let mut list = list_stored_tasks(&**self.store(), most).await?;
        for summary in &mut list.tasks {
            match self.shared().tasks.find(&summary.id) {
                Some(task) => (summary.progress, summary.partial) = task.progress(),
                None => self.add_remote_progress(summary).await?,
            }
        }
        Ok(list)
    }

    /// Tells a task of a client to stop.
    pub async fn cancel_task(&self, client: &str, id: &str) -> Result<TaskCancellation, StoreError> {
        let Some(summary) = self.client_task(client, id).await? else {
            return Ok(TaskCancellation::NotFound);
        };
        match self.shared().tasks.find(id).filter(|task| *task.client == *client) {
            Some(task) if summary.status == TaskStatus::Running => {
                task.cancellation.cancel(CancelReason::Stopped);
                Ok(TaskCancellation::Requested(summary))
            }
            None if summary.status == TaskStatus::Running && self.request_task_stop(&summary).await? => {
                Ok(TaskCancellation::Requested(summary))
            }
            _ => Ok(TaskCancellation::Ended(summary)),
        }
    }

    /// Waits until a task of a client does not run any more. What it came to is then in [`Self::client_task`].
    pub async fn task_ended(&self, client: &str, id: &str) {
        let tasks = &self.shared().tasks;
        let Some(task) = tasks.find(id).filter(|task| *task.client == *client) else {
            return self.remote_task_ended(client, id).await;
        };
        let ended = task.ended.notified();
        // It may have ended before there was someone to wake.
        if tasks.find(id).is_some() {
            ended.await;
        }
    }

    fn summary(&self, value: serde_json::Value) -> Option<TaskSummary> {
        let row: TaskRow = serde_json::from_value(value).ok()?;
        let running = self.shared().tasks.find(&row.id);
        Some(TaskSummary { response: None, ..row.summary(running.as_deref()) })
    }
}

/// The latest tasks that are stored, without what they came to: for operators while no server runs.
pub async fn list_stored_tasks(store: &dyn Store, most: usize) -> Result<TaskList, StoreError> {
    let mut list = TaskList { tasks: Vec::new(), is_complete: true };
    let mut scan = Scan::prefix("", SCAN_PAGE_ROWS);
    let mut seen = 0;
    while seen < MAX_SCANNED_ROWS {
        let page = store.scan(Table::Tasks, scan.clone()).await?;
        let Some((last, _)) = page.last() else { return Ok(list) };
        scan.after = Some(last.clone());
        seen += page.len();
        let rows = page.into_iter().filter_map(|(_, row)| serde_json::from_value::<TaskRow>(row.value).ok());
        list.tasks.extend(rows.map(|row| TaskSummary { response: None, ..row.summary(None) }));
        list.tasks = sorted(std::mem::take(&mut list.tasks));
        list.is_complete &= list.tasks.len() <= most;
        list.tasks.truncate(most);
    }
    Ok(TaskList { is_complete: false, ..list })
}

/// A stored task by its id, of whatever client.
pub async fn find_stored_task(store: &dyn Store, id: &str) -> Result<Option<TaskSummary>, StoreError> {
    let list = list_stored_tasks(store, MAX_SCANNED_ROWS).await?;
    Ok(list.tasks.into_iter().find(|task| task.id == id))
}

/// Those that run first, then the latest.
fn sorted(mut tasks: Vec<TaskSummary>) -> Vec<TaskSummary> {
    tasks.sort_by(|one, other| {
        let rank =
            |task: &TaskSummary| (task.status != TaskStatus::Running, std::cmp::Reverse(task.started_ms));
        rank(one).cmp(&rank(other)).then_with(|| other.id.cmp(&one.id))
    });
    tasks
}

impl SessionCore {
    /// Forgets ended tasks of the client beyond those that are kept. Those that the model has not been told of stay.
    pub(crate) async fn prune_tasks(&self, ended: &Task) {
        let rows = all_rows(&*self.shared.store, Table::Tasks, &client_prefix(&ended.client)).await;
        let rows = rows.unwrap_or_default().into_iter();
        let told = rows.filter(|(_, value)| value["status"] != "running" && value["isTold"] == true);
        let told: Vec<_> = told.map(|(key, _)| key).collect();
        // Their keys grow with time.
        let surplus = told.len().saturating_sub(MAX_ENDED_TASKS);
        let commit = told.into_iter().take(surplus);
        let commit = commit.fold(Commit::default(), |commit, key| commit.delete(Table::Tasks, key));
        if !commit.is_empty() && self.shared.store.queue(commit).is_err() {
            tracing::warn!(session = %self.id, "ended tasks were not pruned");
        }
    }
}
