//! What ended tasks came to, until the model has been told.

use std::sync::Arc;

use quarterdeck_contracts::{Commit, Outcome, StoreError, Table, ToolResponse};
use serde_json::json;

use super::row::{TaskRow, TaskStatus, client_prefix};
use crate::session::{Answer, ClientEvent, DeliveryReason, SessionCore, SessionData};
use crate::store_keys::all_rows;

/// How much of an outcome a note carries.
const MAX_NOTE_BYTES: usize = 8_000;

/// An ended task of which the model has not been told.
pub(crate) struct TaskOutcome {
    row: TaskRow,
}

impl SessionCore {
    /// An ended task is reported to the user at once, or with the next connection, and to the model in its next turn.
    /// The store knows the outcome already, so that a crash does not lose it.
    pub(crate) fn add_task_outcome(&self, data: &mut SessionData, row: TaskRow) {
        let Some(response) = row.response.clone() else { return };
        if self.holds_foreign_text(&row.call.tool, &response) {
            data.ledger.announce_foreign_text();
        }
        let (call_id, tool) = (Arc::from(row.call.call_id.as_str()), Arc::from(row.call.tool.as_str()));
        let answer = Answer::notice(call_id, tool, Arc::new(response), None);
        self.push_event(data, ClientEvent::Answer { reason: DeliveryReason::TaskEnded, answer });
        data.notes.task_outcomes.push(TaskOutcome { row });
    }

    /// Notes about ended tasks, and the commit that marks them as told. It belongs to the commit that stores what the
    /// model is told, so that it is told once.
    pub(crate) fn take_task_outcomes(&self, data: &mut SessionData) -> (Vec<String>, Commit) {
        let mut notes = Vec::new();
        let mut commit = Commit::default();
        for TaskOutcome { mut row } in std::mem::take(&mut data.notes.task_outcomes) {
            notes.extend(row.response.as_ref().map(|response| task_note(&row, response)));
            row.is_told = true;
            commit = row.put(commit, self.keep_until());
        }
        (notes, commit)
    }
}

/// Finds the ended tasks of a session of which its model has not been told.
pub(crate) async fn restore_outcomes(core: &SessionCore) -> Result<(), StoreError> {
    let rows = all_rows(&*core.shared.store, Table::Tasks, &client_prefix(&core.client)).await?;
    let rows = rows.into_iter().filter_map(|(_, value)| serde_json::from_value::<TaskRow>(value).ok());
    let mut data = core.lock();
    for row in rows {
        if row.session_id == *core.id && row.status != TaskStatus::Running && !row.is_told {
            core.add_task_outcome(&mut data, row);
        }
    }
    Ok(())
}

/// What the model is told of an ended task.
fn task_note(row: &TaskRow, response: &ToolResponse) -> String {
    let how = match row.status {
        TaskStatus::Done => "is done",
        TaskStatus::Cancelled => "was cancelled",
        TaskStatus::Unknown => "was interrupted, and whether it was done is not known",
        TaskStatus::Failed | TaskStatus::Running => "has failed",
    };
    let mut outcome = match &response.for_model().outcome {
        Outcome::Success(data) => data.to_string(),
        Outcome::Failure(error) => json!(error).to_string(),
    };
    if outcome.len() > MAX_NOTE_BYTES {
        outcome.truncate(outcome.floor_char_boundary(MAX_NOTE_BYTES));
        outcome.push_str("… (shortened)");
    }
    format!("The background task {} of {} {how}: {outcome}", row.id, row.call.tool)
}
