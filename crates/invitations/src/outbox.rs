//! Invitations that are to be sent, as rows of the store.

use std::time::Duration;

use quarterdeck_contracts::NoticeKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How long after each attempt the next one is made. Mail servers that are down are usually back within a day.
const RETRY_DELAYS: [Duration; 8] = [
    Duration::from_secs(60),
    Duration::from_secs(5 * 60),
    Duration::from_secs(15 * 60),
    Duration::from_secs(60 * 60),
    Duration::from_secs(2 * 60 * 60),
    Duration::from_secs(4 * 60 * 60),
    Duration::from_secs(8 * 60 * 60),
    Duration::from_secs(8 * 60 * 60),
];

/// One message to all attendees that have not received it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OutboxRow {
    pub(crate) kind: NoticeKind,
    pub(crate) to: Vec<String>,
    pub(crate) title: String,
    /// RFC 3339.
    pub(crate) start: String,
    pub(crate) end: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) conference: Option<String>,
    pub(crate) ics: String,
    /// The left part of the `Message-ID`.
    pub(crate) message_id: String,
    #[serde(default)]
    pub(crate) attempts: u32,
    /// Not before this moment, in milliseconds since 1970.
    #[serde(default)]
    pub(crate) next_ms: u64,
}

impl OutboxRow {
    pub(crate) fn parse(value: &Value) -> Option<Self> {
        Self::deserialize(value).ok()
    }

    pub(crate) fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// The row while an attempt is under way: another one is made only if this one never reports back.
    pub(crate) fn claimed(&self, now_ms: u64, lease: Duration) -> Self {
        Self { attempts: self.attempts + 1, next_ms: now_ms + lease.as_millis() as u64, ..self.clone() }
    }

    /// The row after an attempt that left some attendees without the message; `None` when no further one is made.
    pub(crate) fn remaining(self, to: Vec<String>, now_ms: u64) -> Option<Self> {
        let made = usize::try_from(self.attempts).unwrap_or(usize::MAX);
        let delay = RETRY_DELAYS.get(made.checked_sub(1)?)?;
        Some(Self { to, next_ms: now_ms + delay.as_millis() as u64, ..self })
    }
}
