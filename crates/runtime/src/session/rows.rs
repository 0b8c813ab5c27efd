//! What the store knows of a session: its row, and a row for each call.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use quarterdeck_contracts::{Commit, Mode, Table, ToolResponse};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{SessionCore, SessionData};
use crate::ledger::{CallIdentity, Entry, Phase};
use crate::state::SessionState;

/// How long changes that may be lost are gathered before the store is told.
const SAVE_DELAY: Duration = Duration::from_millis(250);

/// A session, as the store keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionRow {
    pub(crate) client_id: String,
    pub(crate) mode: Mode,
    pub(crate) registry_version: String,
    pub(crate) turn: u64,
    #[serde(default)]
    pub(crate) turn_keys: Vec<(String, u64)>,
    #[serde(default)]
    pub(crate) calls_made: u64,
    pub(crate) state: SessionState,
    #[serde(default)]
    pub(crate) notes: Vec<String>,
    pub(crate) created_ms: u64,
    /// When a client was last there.
    pub(crate) seen_ms: u64,
}

/// Where a session stands in its table.
pub(crate) fn session_key(id: &str) -> String {
    format!("s/{id}")
}

/// Under what a refusal is kept.
pub(super) fn refusal_key(id: &str) -> Arc<str> {
    format!("refused:{id}").into()
}

/// A call, as the store keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallRow {
    pub(crate) call_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) provider_id: Option<String>,
    pub(crate) key: String,
    pub(crate) tool: String,
    pub(crate) content: String,
    pub(crate) turn: u64,
    pub(crate) writes: bool,
    pub(crate) is_delivered: bool,
    /// What it came to; a write without it has begun, and nobody knows how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) envelope: Option<ToolResponse>,
    /// A gate's refusal, remembered for its id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_refusal: bool,
    pub(crate) at_ms: u64,
}

impl CallRow {
    /// A write that is about to run.
    pub(super) fn begun(entry: &Entry, at_ms: u64) -> Self {
        Self {
            call_id: entry.call_id.to_string(),
            provider_id: entry.provider_id.as_deref().map(str::to_owned),
            key: entry.key().to_string(),
            tool: entry.tool.to_string(),
            content: entry.content.to_string(),
            turn: entry.turn,
            writes: entry.writes,
            is_delivered: false,
            envelope: None,
            is_refusal: false,
            at_ms,
        }
    }

    /// A call with its answer.
    pub(super) fn done(entry: &Entry, response: &ToolResponse, at_ms: u64) -> Self {
        let is_delivered = entry.phase() >= Phase::Delivered;
        Self { envelope: Some(response.clone()), is_delivered, ..Self::begun(entry, at_ms) }
    }

    /// The call, back in the ledger.
    pub(super) fn entry(&self) -> Arc<Entry> {
        let entry = Entry::new(CallIdentity {
            call_id: self.call_id.as_str().into(),
            provider_id: self.provider_id.as_deref().map(Arc::from),
            nth: 0,
            tool: self.tool.as_str().into(),
            content: self.content.as_str().into(),
            turn: self.turn,
            writes: self.writes,
        });
        entry.start();
        entry.mark_final();
        entry.is_saved.store(true, Ordering::Relaxed);
        entry.with_key(&self.key)
    }
}

impl SessionCore {
    /// Where a call of this session stands in its table.
    pub(super) fn call_key(&self, key: &str) -> String {
        format!("{}/{key}", self.id)
    }

    /// Sees to it that the store hears of what has changed, soon.
    pub(super) fn save_soon(self: &Arc<Self>, data: &mut SessionData) {
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
                session.save_now();
            }
        });
    }

    /// Hands everything that the store has not heard of to its queue.
    pub(crate) fn save_now(&self) {
        let commit = self.unsaved(&mut self.lock());
        if commit.is_empty() {
            return;
        }
        if let Err(error) = self.shared.store.queue(commit) {
            tracing::warn!(session = %self.id, error = %error, "records of look-ups were not stored");
        }
    }

    /// What the store has not heard of, as one commit.
    pub(super) fn unsaved(&self, data: &mut SessionData) -> Commit {
        let unsaved = std::mem::take(&mut data.unsaved);
        let mut commit = Commit::default();
        let (now, until) = (self.now_ms(), self.keep_until());
        let mut put = |key: String, row: CallRow| {
            commit = std::mem::take(&mut commit).put_until(Table::Calls, key, json!(row), until);
        };
        for entry in unsaved.entries {
            if entry.is_forgotten.load(Ordering::Relaxed) {
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
                tool: response.meta.tool_id.clone(),
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

    /// The session's own row.
    pub(super) fn row(&self, data: &SessionData) -> SessionRow {
        SessionRow {
            client_id: self.client.to_string(),
            mode: self.mode,
            registry_version: self.snapshot.version().to_owned(),
            turn: data.ledger.turn_number(),
            turn_keys: data.turn_keys.iter().cloned().collect(),
            calls_made: data.calls_made,
            state: data.controller.state().clone(),
            notes: data.notes.clone(),
            created_ms: self.created_ms,
            seen_ms: data.seen_ms,
        }
    }
}
