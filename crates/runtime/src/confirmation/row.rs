//! A question, as the store keeps it.

use std::time::Duration;

use quarterdeck_contracts::Mode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A question, as the store keeps it.
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
    /// As the model wrote them, with the tool: what makes two calls equal.
    pub(crate) content: String,
    pub(crate) call_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) provider_id: Option<String>,
    pub(crate) key: String,
    pub(crate) turn: u64,
    /// When it was asked, by the time of day. Rows of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) opened_ms: Option<u64>,
    pub(crate) expires_ms: u64,
    pub(crate) status: Status,
}

/// What has become of a question. All but the first are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    Open,
    Approved,
    Denied,
    Expired,
}

impl ConfirmationRow {
    /// How long it could be answered, from when it was asked.
    pub(super) fn time_given(&self) -> Option<Duration> {
        let opened = self.opened_ms?;
        Some(Duration::from_millis(self.expires_ms.saturating_sub(opened)))
    }
}
