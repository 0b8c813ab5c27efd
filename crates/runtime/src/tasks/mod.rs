//! Calls that go on in the background after they were answered.
//!
//! | part | file |
//! | --- | --- |
//! | one task while it runs | `task.rs` |
//! | how many may run | `slots.rs` |
//! | what the store keeps of it | `row.rs` |
//! | its outcome, for the model and the user | `outcome.rs` |
//! | listing and cancelling | `list.rs` |
//! | what a restart leaves | `recovery.rs` |
//!
//! How a task is run is in `pipeline/detached.rs`: its handler runs like that of every other call.

mod list;
mod outcome;
mod recovery;
mod row;
mod slots;
mod task;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quarterdeck_contracts::handler::CancelReason;

pub use list::{TaskCancellation, TaskList, find_stored_task, list_stored_tasks};
pub use recovery::RecoveredTasks;
pub use row::{TaskStatus, TaskSummary};

pub(crate) use outcome::{TaskOutcome, restore_outcomes};
pub(crate) use row::{TaskRow, TaskRunner, client_prefix};
pub(crate) use slots::{SlotRefusal, TaskSlots};
pub(crate) use task::{Task, TaskPhase, TaskTimes};

/// The tasks of this process.
#[derive(Default)]
pub(crate) struct Tasks {
    pub(crate) slots: Arc<TaskSlots>,
    running: Mutex<HashMap<Arc<str>, Arc<Task>>>,
}

impl Tasks {
    pub(crate) fn add(&self, task: &Arc<Task>) {
        self.lock().insert(task.id.clone(), task.clone());
    }

    pub(crate) fn remove(&self, task: &Task) {
        self.lock().remove(&task.id);
        task.ended.notify_waiters();
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<Task>> {
        self.lock().get(id).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Task>> {
        self.lock().values().cloned().collect()
    }

    pub(crate) fn has_any_of(&self, session: &str) -> bool {
        self.lock().values().any(|task| *task.session_id == *session)
    }

    pub(crate) fn cancel_all_of(&self, session: &str, reason: CancelReason) {
        for task in self.lock().values().filter(|task| *task.session_id == *session) {
            task.cancellation.cancel(reason);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Task>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
