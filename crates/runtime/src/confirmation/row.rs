//! A request for confirmation, as the store keeps it.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::telemetry::TraceContext;
use quarterdeck_contracts::{Mode, SideEffects};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ledger::{CallIdentity, Entry};
use crate::registry::Snapshot;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfirmationRow {
    pub(crate) session_id: String,
    pub(crate) client_id: String,
    pub(crate) mode: Mode,
    pub(crate) registry_version: String,
    pub(crate) tool: String,
    /// As they will be run.
    pub(crate) args: Value,
    /// What the handler's precheck saw before the user was asked.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(crate) seen: Value,
    /// As the model wrote them, with the tool: what makes two calls equal.
    pub(crate) content: String,
    pub(crate) call_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) provider_id: Option<String>,
    pub(crate) key: String,
    pub(crate) turn: u64,
    /// When it was requested, by the time of day. Rows of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) opened_ms: Option<u64>,
    pub(crate) expires_ms: u64,
    pub(crate) status: Status,
    /// The span of the call that asked, which the one of the approved call goes back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) span: Option<TraceContext>,
}

/// What has become of it. All but the first are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    Open,
    Approved,
    Denied,
    Expired,
}

impl ConfirmationRow {
    /// The call that it is about, for a ledger that does not have it any more.
    pub(super) fn entry(&self, snapshot: &Snapshot) -> Arc<Entry> {
        let tool = snapshot.find(&self.tool);
        Entry::new(CallIdentity {
            call_id: self.call_id.as_str().into(),
            provider_id: self.provider_id.as_deref().map(Arc::from),
            nth: 0,
            tool: self.tool.as_str().into(),
            content: self.content.as_str().into(),
            turn: self.turn,
            writes: tool.is_some_and(|tool| tool.metadata().side_effects == SideEffects::Writes),
        })
        .with_key(&self.key)
    }

    /// How long it could be resolved, from when it was requested.
    pub(super) fn time_given(&self) -> Option<Duration> {
        let opened = self.opened_ms?;
        Some(Duration::from_millis(self.expires_ms.saturating_sub(opened)))
    }
}

/// The key in [`Table::SessionConfirmations`](quarterdeck_contracts::Table::SessionConfirmations); with an empty hash, the
/// prefix of a session's keys. Its row expires with the open confirmation; what the confirmation came to is in its own row.
pub(crate) fn index_key(session: &str, hash: &str) -> String {
    format!("{session}/{hash}")
}
