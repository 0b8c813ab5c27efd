//! What the store keeps of a session: its row, and a row for each call.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use quarterdeck_contracts::{Mode, ToolResponse};
use serde::{Deserialize, Serialize};

use crate::ledger::{CallIdentity, Entry, Phase};
use crate::registry::Snapshot;
use crate::state::SessionState;

/// A session, as the store keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionRow {
    pub(crate) client_id: String,
    pub(crate) mode: Mode,
    pub(crate) registry_version: String,
    /// The content hash of the version. Rows of earlier releases do not have it.
    #[serde(default)]
    pub(crate) registry_digest: String,
    pub(crate) turn: u64,
    #[serde(default)]
    pub(crate) turn_keys: Vec<(String, u64)>,
    #[serde(default)]
    pub(crate) calls_made: u64,
    pub(crate) state: SessionState,
    #[serde(default)]
    pub(crate) notes: Vec<String>,
    pub(crate) created_ms: u64,
    /// When a client was last connected.
    pub(crate) seen_ms: u64,
}

impl SessionRow {
    /// A session that begins.
    pub(crate) fn new(client_id: String, mode: Mode, snapshot: &Snapshot, now_ms: u64) -> Self {
        Self {
            client_id,
            mode,
            registry_version: snapshot.version().to_owned(),
            registry_digest: snapshot.content_hash().to_owned(),
            turn: 0,
            turn_keys: Vec::new(),
            calls_made: 0,
            state: SessionState::new(mode),
            notes: Vec::new(),
            created_ms: now_ms,
            seen_ms: now_ms,
        }
    }
}

pub(crate) fn session_key(id: &str) -> String {
    format!("s/{id}")
}

/// The key of a refusal among the calls of its session.
pub(crate) fn refusal_key(id: &str) -> Arc<str> {
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
    /// Absent for a write that has started and was not recorded: its outcome is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) envelope: Option<ToolResponse>,
    /// A gate's refusal, remembered for its id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_refusal: bool,
    pub(crate) at_ms: u64,
}

impl CallRow {
    /// A write that is about to run.
    pub(crate) fn started(entry: &Entry, at_ms: u64) -> Self {
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
    pub(crate) fn done(entry: &Entry, response: &ToolResponse, at_ms: u64) -> Self {
        let is_delivered = entry.phase() >= Phase::Delivered;
        Self { envelope: Some(response.clone()), is_delivered, ..Self::started(entry, at_ms) }
    }

    /// The call, back in the ledger.
    pub(crate) fn entry(&self) -> Arc<Entry> {
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
