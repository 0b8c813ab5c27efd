//! The first line of a segment.

use std::io;
use std::time::SystemTime;

use serde_json::{Map, Value, json};

use super::super::chain::parts;
use crate::envelope::timestamp;

/// Its event name. A handler's own events have a `source`, so none of them passes for it.
const EVENT: &str = "audit_segment";

/// The newest format of a log that this version reads and writes. One that changes the format begins a segment whose
/// header has a higher `format`; a header without one is of format 1.
const FORMAT: u64 = 1;

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

/// Refuses a segment whose first line says that a newer version has written it. Nothing else of the line need be as this
/// version knows it.
pub(super) fn refuse_newer(first_line: &[u8]) -> io::Result<()> {
    let line: Value = serde_json::from_slice(first_line).unwrap_or_default();
    match line.get("format").and_then(Value::as_u64) {
        Some(found) if found > FORMAT && is_header(&line) => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!(
                "it has format {found}, and this version of Quarterdeck knows formats up to {FORMAT}; \
                 use the newer version, or restore a backup from before the upgrade"
            ),
        )),
        _ => Ok(()),
    }
}

fn is_header(line: &Value) -> bool {
    line.get("event").and_then(Value::as_str) == Some(EVENT) && line.get("source").is_none()
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
        if !is_header(line) {
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

    #[test]
    fn newer_header_is_refused_and_nothing_else_is_taken_for_one() {
        let refused =
            |line: Value| refuse_newer(line.to_string().as_bytes()).map_err(|error| error.to_string());
        let newer =
            refused(json!({ "event": EVENT, "format": FORMAT + 1, "chain": "as it is then" })).unwrap_err();
        assert!(newer.contains("has format 2") && newer.contains("use the newer version"), "{newer}");
        for other in [
            json!({ "event": EVENT, "segment": 2 }),
            json!({ "event": EVENT, "format": FORMAT }),
            json!({ "event": EVENT, "format": 9, "source": "handler" }),
            json!({ "event": "tool_execution", "format": 9 }),
        ] {
            assert_eq!(refused(other.clone()), Ok(()), "{other}");
        }
        assert!(refuse_newer(b"not JSON").is_ok(), "which is damage, and is reported as that");
    }
}
