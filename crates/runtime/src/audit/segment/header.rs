//! The first line of a segment.

use std::time::SystemTime;

use serde_json::{Map, Value, json};

use super::super::chain::parts;
use crate::envelope::timestamp;

/// Its event name. A handler's own events have a `source`, so none of them passes for it.
const EVENT: &str = "audit_segment";

/// What a segment says of itself and the one before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::audit) struct SegmentHeader {
    pub(in crate::audit) segment: u64,
    pub(in crate::audit) previous: PreviousSegment,
    /// Where it begins in the log, in bytes of all lines before it.
    pub(in crate::audit) offset: u64,
}

/// The segment before, as it was closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::audit) struct PreviousSegment {
    /// The numbers of its first and last line.
    pub(in crate::audit) first: u64,
    pub(in crate::audit) last: u64,
    /// The hash of its last line.
    pub(in crate::audit) hash: String,
}

impl SegmentHeader {
    pub(in crate::audit) fn fields(&self, now: SystemTime) -> Map<String, Value> {
        let fields = json!({
            "event": EVENT, "time": timestamp(now), "segment": self.segment, "previous": self.segment - 1,
            "previousFirst": self.previous.first, "previousLast": self.previous.last,
            "previousHash": self.previous.hash, "offset": self.offset,
        });
        match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    /// The header in a line, if it is one.
    pub(in crate::audit) fn parse(line: &Value) -> Option<Self> {
        if line.get("event").and_then(Value::as_str) != Some(EVENT) || line.get("source").is_some() {
            return None;
        }
        let number = |name: &str| line.get(name).and_then(Value::as_u64);
        let segment = number("segment").filter(|segment| *segment > 1)?;
        let hash = line.get("previousHash")?.as_str()?.to_owned();
        let previous =
            PreviousSegment { first: number("previousFirst")?, last: number("previousLast")?, hash };
        Some(Self { segment, previous, offset: number("offset")? })
    }
}

/// What the first line of a segment tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::audit) struct FirstLine {
    /// Its number.
    pub(in crate::audit) seq: u64,
    /// When it was written, as the log writes times.
    pub(in crate::audit) time: String,
    /// Absent in the very first segment.
    pub(in crate::audit) header: Option<SegmentHeader>,
}

impl FirstLine {
    /// `None` if it is not a line of ours.
    pub(in crate::audit) fn parse(line: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(line).ok()?;
        let (seq, _, _) = parts(text)?;
        let value: Value = serde_json::from_str(text).ok()?;
        let time = value.get("time").and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(Self { seq, time, header: SegmentHeader::parse(&value) })
    }

    /// The number of the segment that it begins.
    pub(in crate::audit) fn segment(&self) -> u64 {
        self.header.as_ref().map_or(1, |header| header.segment)
    }

    /// Where the segment begins in the log.
    pub(in crate::audit) fn offset(&self) -> u64 {
        self.header.as_ref().map_or(0, |header| header.offset)
    }

    /// The day on which it was begun.
    pub(in crate::audit) fn day(&self) -> &str {
        day(&self.time)
    }
}

/// The date in a time of the log.
pub(in crate::audit) fn day(time: &str) -> &str {
    time.get(..10).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written_and_no_handler_can_write_one() {
        let previous = PreviousSegment { first: 7, last: 41, hash: "ab".into() };
        let header = SegmentHeader { segment: 3, previous, offset: 9_000 };
        let mut line = Value::Object(header.fields(SystemTime::UNIX_EPOCH));
        assert_eq!(SegmentHeader::parse(&line), Some(header));
        line["source"] = "handler".into();
        assert_eq!(SegmentHeader::parse(&line), None);
    }
}
