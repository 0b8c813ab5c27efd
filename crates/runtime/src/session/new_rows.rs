//! The rows of a new session, which are stored with its first commit.

use std::sync::{MutexGuard, PoisonError};

use quarterdeck_contracts::{Commit, CommitError, Table};
use serde_json::json;

use super::SessionCore;
use super::rows::session_key;
use crate::registry::PinReason;

/// What its first commit stores of a session, beside its own row.
pub(crate) struct NewRows {
    pub(crate) rows: Commit,
    pub(crate) pinned_by: PinReason,
}

impl SessionCore {
    pub(crate) fn set_new_rows(&self, rows: NewRows) {
        *self.new_rows() = Some(rows);
    }

    /// Whether a crash would leave nothing of it.
    pub(crate) fn is_unstored(&self) -> bool {
        self.new_rows().is_some()
    }

    /// Commits, with the rows of a session that is new: both or neither.
    pub(crate) async fn commit_unleased(&self, commit: Commit) -> Result<u64, CommitError> {
        let Some(new) = self.new_rows().take() else { return self.commit_unfenced(commit).await };
        let row = {
            let mut data = self.lock();
            data.unsaved.session = false;
            json!(self.row(&data))
        };
        let rows = new.rows.clone().put_until(Table::Sessions, session_key(&self.id), row, self.keep_until());
        let done = self.commit_unfenced(rows.and(commit)).await;
        match done {
            Ok(_) => self.audit_start(new.pinned_by),
            Err(_) => self.set_new_rows(new),
        }
        done
    }

    pub(crate) fn audit_start(&self, pinned_by: PinReason) {
        self.audit_session("session_start", json!({ "pinnedBy": pinned_by.as_str() }));
    }

    fn new_rows(&self) -> MutexGuard<'_, Option<NewRows>> {
        self.new_rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
