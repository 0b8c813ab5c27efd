//! Everything is on the record: one JSON line per call, state transition, confirmation step, session start and end.
//!
//! Lines are chained by their hashes; the head is kept in the store, so that a line that is missing, changed or cut
//! off is found. The log is kept in segments, which the chain goes on over. Sessions hand over plain data and never wait.

mod chain;
mod error;
mod follow;
mod gap;
mod kept_lines;
mod lines;
mod log;
mod lost_lines;
mod open;
mod position;
mod query;
mod reader;
mod rotate;
mod seal_check;
mod search;
mod segment;
mod verify;
mod verify_nodes;
mod watch;
mod writer;

#[cfg(test)]
mod segment_tests;

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Map, Value};

pub use chain::GENESIS;
pub use error::AuditLogError;
pub use log::{AuditLog, AuditLogParts};
pub use lost_lines::LostLines;
pub use query::{Filter, matches_filter};
pub use reader::{AuditEntry, AuditReader};
pub use search::{AuditMatches, Search, search};
pub use segment::{SegmentSettings, log_size};
pub use verify::{AuditCut, SealVerification, Verification, verify, verify_sealed};
pub use verify_nodes::{ChainSource, NodeVerification, verify_kept, verify_nodes};

/// The `source` of events that a handler has named. Those without one are ours.
pub(crate) const HANDLER_SOURCE: &str = "handler";

/// One line of the audit log, before it is chained.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditEvent {
    /// Its kind: `tool_execution`, `state_transition`, `confirmation`, `session_start`, or a handler's own name.
    pub event: Arc<str>,
    pub time: SystemTime,
    /// Everything else, in the order in which it is written.
    pub fields: Map<String, Value>,
}

/// Takes audit events. An implementation must return at once: a full disk or a slow writer never holds up a call.
pub trait AuditSink: Send + Sync {
    fn record(&self, event: AuditEvent);

    /// Whether events are kept at all; otherwise they need not be put together.
    fn is_enabled(&self) -> bool {
        true
    }

    /// Counts what could not be kept, for metrics. A sink that stands before another one hands on its counts.
    fn lost_lines(&self) -> LostLines {
        LostLines::default()
    }
}

/// Keeps nothing: for tests and for a single call from a terminal.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoAudit;

impl AuditSink for NoAudit {
    fn record(&self, _: AuditEvent) {}

    fn is_enabled(&self) -> bool {
        false
    }
}
