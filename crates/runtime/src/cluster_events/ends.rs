//! Sessions that an operator ends from another node, or from a terminal.
//!
//! The node that has a session ends it, so that what has begun to write can finish. It is asked by a row, which stays until
//! it has done so.

use quarterdeck_contracts::{Commit, CommitError, Scan, Store, StoreError, Table};
use serde_json::json;

use super::topic;
use crate::admin::end_stored_session;
use crate::orchestrator::Orchestrator;
use crate::session::{Session, session_key};
use crate::state::PendingEnd;

/// How the keys of these rows begin in [`Table::Sessions`].
const PREFIX: &str = "e/";
const PAGE_ROWS: usize = 500;

/// Adds a request that a session is ended, to the commit that ends it in the store. The node that has it may still write
/// its row, so the request stands beside it.
pub(crate) fn request_end(commit: Commit, id: &str, reason: &str, expires_ms: u64) -> Commit {
    commit.put_until(Table::Sessions, format!("{PREFIX}{id}"), json!({ "reason": reason }), Some(expires_ms))
}

impl Orchestrator {
    /// Ends a session wherever it is: in this process, on another node, or in the store. `false` if there is no active one
    /// of that id.
    pub async fn end_session(&self, id: &str, reason: &str) -> Result<bool, CommitError> {
        // What is in memory may be of a time before another node took the session; the store knows.
        if !self.is_active_in_store(id).await? {
            return Ok(false);
        }
        if let Some(session) = self.find(id) {
            session.end(PendingEnd::with_reason(reason)).await;
            if !self.is_active_in_store(id).await? {
                return Ok(true);
            }
        }
        end_stored_session(&**self.store(), id).await
    }

    async fn is_active_in_store(&self, id: &str) -> Result<bool, StoreError> {
        let row = self.store().get(Table::Sessions, &session_key(id)).await?;
        Ok(row.is_some_and(|row| row.value["state"]["isActive"] == true))
    }

    pub(super) async fn apply_end(&self, id: &str) -> Result<usize, StoreError> {
        let Some(session) = self.find(id) else { return Ok(0) };
        match self.store().get(Table::Sessions, &format!("{PREFIX}{id}")).await? {
            Some(row) => {
                self.end_as_requested(&session, row.value["reason"].as_str()).await;
                Ok(1)
            }
            None => Ok(0),
        }
    }

    pub(super) async fn apply_all_ends(&self) -> Result<usize, StoreError> {
        let mut found = 0;
        let mut scan = Scan::prefix(PREFIX, PAGE_ROWS);
        loop {
            let page = self.store().scan(Table::Sessions, scan.clone()).await?;
            let Some((last, _)) = page.last() else { return Ok(found) };
            scan.after = Some(last.clone());
            for (key, row) in page {
                if let Some(session) = self.find(&key[PREFIX.len()..]) {
                    self.end_as_requested(&session, row.value["reason"].as_str()).await;
                    found += 1;
                }
            }
        }
    }

    async fn end_as_requested(&self, session: &Session, reason: Option<&str>) {
        session.end(PendingEnd::with_reason(reason.unwrap_or("ended_by_operator"))).await;
        let done = Commit::default().delete(Table::Sessions, format!("{PREFIX}{}", session.id()));
        if let Err(error) = self.store().queue(done) {
            tracing::warn!(session = session.id(), error = %error, "request to end a session was not removed");
        }
    }
}

/// Tells the node that has a session that it is to be ended.
pub(crate) fn announce_end(store: &dyn Store, id: &str) {
    let change = quarterdeck_contracts::Change { topic: topic::SESSION_END.to_owned(), key: id.to_owned() };
    store.notify(change);
}
