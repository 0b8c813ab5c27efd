//! Which segments are older than the log is kept.

use std::io;
use std::time::{Duration, SystemTime};

use super::cut::CutRecord;
use super::files::SegmentFiles;
use crate::envelope::timestamp;

/// The segments after `last_cut` whose every line is older than `retain`, as the record of their cut; `None` where there are
/// none. Those up to it are being removed at this moment.
///
/// The segment after them says when they were closed, so only first lines are read. What is damaged is evidence, and
/// stays with everything after it.
pub(in crate::audit) fn find_expired(
    files: &SegmentFiles,
    last_cut: u64,
    active: u64,
    retain: Duration,
    now: SystemTime,
) -> io::Result<Option<CutRecord>> {
    let Some(before) = now.checked_sub(retain).map(timestamp) else { return Ok(None) };
    let mut cut: Option<CutRecord> = None;
    let closed: Vec<u64> = files.list()?.range(last_cut + 1..active).copied().collect();
    for (place, segment) in closed.iter().copied().enumerate() {
        let after = match closed.get(place + 1) {
            Some(after) => files.first_line(*after)?,
            None => files.open_active()?.and_then(|active| active.first),
        };
        let Some(after) = after else { break };
        let Some(header) = after.header.filter(|header| header.segment == segment + 1) else { break };
        if after.time.is_empty() || after.time >= before {
            break;
        }
        let first =
            cut.as_ref().map_or((segment, header.previous.first), |cut| (cut.first_segment, cut.first_line));
        cut = Some(CutRecord {
            first_segment: first.0,
            last_segment: segment,
            first_line: first.1,
            last_line: header.previous.last,
            last_hash: header.previous.hash,
            since: after.time,
        });
    }
    Ok(cut)
}
