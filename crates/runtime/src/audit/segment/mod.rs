//! A log in segments, so that it can be kept for years: the newest is the file that lines are appended to, those before it
//! are closed, compressed, and one day cut.
//!
//! The chain goes on over segments. Each but the first begins with a header, a line like any other, that names the segment
//! before it and the hash of its last line. Positions in the log count the bytes of all lines ever written, so they stay
//! right when a segment is closed, compressed or cut.

mod blocks;
pub(super) mod crash_point;
mod cut;
mod files;
mod header;
mod maintenance;
mod reader;
mod retention;
mod rotation;
mod seal;
mod trim;

use std::path::PathBuf;
use std::time::Duration;

pub(super) use cut::CutRecord;
pub use files::log_size;
pub(super) use files::{ActiveFile, SegmentFiles, is_same_file};
pub(super) use header::{FirstLine, PreviousSegment, SegmentHeader, day};
#[cfg(test)]
pub(super) use maintenance::maintain;
pub(super) use maintenance::{Maintenance, MaintenanceParts};
pub(super) use reader::{SegmentReader, SegmentSource};
pub(super) use retention::find_expired;
pub(super) use rotation::replace_active;
pub(super) use seal::{Seal, SealReader};

const MEGABYTE: u64 = 1 << 20;

/// When a segment is closed, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentSettings {
    /// A segment that is larger is closed before the next line.
    pub max_bytes: u64,
    /// Whether a segment is closed when the day changes (UTC).
    pub daily: bool,
    pub compress: bool,
    /// How long closed segments are kept; `None` for ever.
    pub retain: Option<Duration>,
    /// The file that the ends of closed segments are written to, on another disk or machine.
    pub seal_file: Option<PathBuf>,
}

impl Default for SegmentSettings {
    fn default() -> Self {
        Self { max_bytes: 64 * MEGABYTE, daily: false, compress: true, retain: None, seal_file: None }
    }
}
