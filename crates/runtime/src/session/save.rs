//! How changes reach the store that may be lost: gathered for a moment, then queued.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use quarterdeck_contracts::{Commit, Table};
use serde_json::json;

use super::rows::{CallRow, SessionRow, refusal_key, session_key};
use super::{SessionCore, SessionData};
use crate::ledger::{Entry, Phase};

/// How long changes that may be lost are gathered before they are queued.
const SAVE_DELAY: Duration = Duration::from_millis(250);

/// Whether no later call can be answered from this one: a look-up of an earlier turn that was delivered and whose id names
/// nothing.
fn is_out_of_reach(entry: &Entry, turn: u64) -> bool {
    !entry.writes && entry.turn < turn && entry.provider_id.is_none() && entry.phase() >= Phase::Delivered
}

impl SessionCore {
    /// The key of a call of this session in its table.
    pub(crate) fn call_key(&self, key: &str) -> String {
        format!("{}/{key}", self.id)
    }

    /// Schedules what has changed to be stored.
    pub(crate) fn save_soon(self: &Arc<Self>, data: &mut SessionData) {
        if data.unsaved.is_scheduled || data.unsaved.is_empty() {
            return;
        }
        // A session that is used outside a runtime is saved when it next is inside one.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        data.unsaved.is_scheduled = true;
        let session = Arc::downgrade(self);
        runtime.spawn(async move {
            tokio::time::sleep(SAVE_DELAY).await;
            if let Some(session) = Weak::upgrade(&session) {
                session.lock().unsaved.is_scheduled = false;
                session.save_now();
            }
        });
    }

    /// Hands everything that is not stored yet to the store's queue.
    pub(crate) fn save_now(&self) {
        if self.may_queue() {
            self.queue_unsaved(self.take_unsaved(&mut self.lock()));
        }
    }

    pub(crate) fn queue_unsaved(&self, commit: Commit) {
        if commit.is_empty() {
            return;
        }
        if let Err(error) = self.queue(commit) {
            tracing::warn!(session = %self.id, error = %error, "look-ups were not recorded");
        }
    }

    /// What is not stored yet, as one commit.
    pub(crate) fn take_unsaved(&self, data: &mut SessionData) -> Commit {
        let unsaved = std::mem::take(&mut data.unsaved);
        let mut commit = Commit::default();
        let (now, until, turn) = (self.now_ms(), self.keep_until(), data.ledger.turn_number());
        let mut put = |key: String, row: CallRow| {
            commit = std::mem::take(&mut commit).put_until(Table::Calls, key, json!(row), until);
        };
        for entry in unsaved.entries {
            if entry.is_forgotten.load(Ordering::Relaxed)
                || entry.is_in_doubt()
                || is_out_of_reach(&entry, turn)
            {
                continue;
            }
            entry.is_saved.store(true, Ordering::Relaxed);
            if let Some(response) = entry.answer() {
                put(self.call_key(entry.key()), CallRow::done(&entry, &response, now));
            }
        }
        for (id, content, response) in unsaved.refusals {
            let row = CallRow {
                call_id: id.clone(),
                provider_id: Some(id.clone()),
                key: refusal_key(&id).to_string(),
                tool: response.meta.tool_id.to_string(),
                content: content.to_string(),
                turn: data.ledger.turn_number(),
                writes: false,
                is_delivered: true,
                envelope: Some((*response).clone()),
                is_refusal: true,
                at_ms: now,
            };
            put(self.call_key(&row.key), row);
        }
        for key in unsaved.forgotten {
            commit = commit.delete(Table::Calls, self.call_key(&key));
        }
        if unsaved.session || !commit.is_empty() {
            commit = commit.put_until(Table::Sessions, session_key(&self.id), json!(self.row(data)), until);
        }
        commit
    }

    pub(super) fn row(&self, data: &SessionData) -> SessionRow {
        SessionRow {
            client_id: self.client.to_string(),
            mode: self.mode,
            registry_version: self.snapshot.version().to_owned(),
            registry_digest: self.snapshot.content_hash().to_owned(),
            turn: data.ledger.turn_number(),
            turn_keys: data.turn_keys.iter().cloned().collect(),
            calls_made: data.call_ids.count,
            state: data.controller.state().clone(),
            notes: data.notes.texts.clone(),
            created_ms: self.created_ms,
            seen_ms: data.seen_ms,
        }
    }
}
