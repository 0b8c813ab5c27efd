//! The line that a log gets when something is missing from it, or was put into it.

use std::time::SystemTime;

use serde_json::{Map, Value, json};

use super::chain::ChainHead;
use crate::envelope::timestamp;

/// Its event name. A handler's own events have a `source`, so none of them passes for it.
const EVENT: &str = "audit_gap";

/// What differs from the log as it was left.
pub(super) struct Gap<'a> {
    /// The end of the log as the store, or the process that writes it, knows it; `None` when the store knows none.
    pub(super) expected: Option<&'a ChainHead>,
    /// The number of the last line that was found; `None` when the file was changed while it was being written.
    pub(super) found: Option<u64>,
}

impl Gap<'_> {
    pub(super) fn fields(&self, now: SystemTime) -> Map<String, Value> {
        let fields = json!({
            "event": EVENT, "time": timestamp(now),
            "expected": self.expected.map(|head| head.seq), "expectedHash": self.expected.map(|head| &head.hash),
            "found": self.found,
        });
        match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}

/// What went wrong before a line, if it is a gap line.
pub(super) fn describe_gap(line: &Value) -> Option<String> {
    // A handler may call its own event the same.
    if line.get("event").and_then(Value::as_str) != Some(EVENT) || line.get("source").is_some() {
        return None;
    }
    let number = |name: &str| line.get(name).and_then(Value::as_u64);
    Some(match (number("expected"), number("found")) {
        (Some(expected), Some(found)) => {
            format!("lines were cut off before it: the trail had {expected} and was left with {found}")
        }
        (None, _) => "a new store was begun before it, so lines may be missing before it".into(),
        (Some(expected), None) => {
            format!("the trail was changed while it was being written, when it had {expected} lines")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_a_handler_does_not_pass_for_a_gap() {
        let ours = json!({ "event": "audit_gap", "expected": 3, "found": 2 });
        assert!(describe_gap(&ours).is_some());
        let other = json!({ "event": "audit_gap", "expected": 3, "found": 2, "source": "handler" });
        assert_eq!(describe_gap(&other), None);
    }
}
