//! The line that records which segments retention has cut.

use std::time::SystemTime;

use serde_json::{Map, Value, json};

use crate::envelope::timestamp;

const EVENT: &str = "audit_cut";

/// Whole segments that are no longer kept. It is written before the first of them is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::audit) struct CutRecord {
    pub(in crate::audit) first_segment: u64,
    pub(in crate::audit) last_segment: u64,
    pub(in crate::audit) first_line: u64,
    pub(in crate::audit) last_line: u64,
    /// The hash of the last line that was cut, which the chain goes on from.
    pub(in crate::audit) last_hash: String,
    /// When the segment after the cut was begun: everything since then is kept.
    pub(in crate::audit) since: String,
}

impl CutRecord {
    pub(in crate::audit) fn fields(&self, now: SystemTime) -> Map<String, Value> {
        let fields = json!({
            "event": EVENT, "time": timestamp(now),
            "firstSegment": self.first_segment, "lastSegment": self.last_segment,
            "firstLine": self.first_line, "lastLine": self.last_line, "lastHash": self.last_hash,
            "since": self.since,
        });
        match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    /// The record in a line, if it is one.
    pub(in crate::audit) fn parse(line: &Value) -> Option<Self> {
        if line.get("event").and_then(Value::as_str) != Some(EVENT) || line.get("source").is_some() {
            return None;
        }
        let number = |name: &str| line.get(name).and_then(Value::as_u64);
        let text = |name: &str| line.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            first_segment: number("firstSegment")?,
            last_segment: number("lastSegment")?,
            first_line: number("firstLine")?,
            last_line: number("lastLine")?,
            last_hash: text("lastHash")?,
            since: text("since")?,
        })
    }
}
