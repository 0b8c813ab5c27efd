//! `[audit]`: how the audit trail is kept.

use std::time::Duration;

use quarterdeck_runtime::audit::SegmentSettings;

use super::kinds::{boolean, file, whole};
use super::reader::{Reader, settings};

const MEGABYTE: u64 = 1 << 20;
const DAY: Duration = Duration::from_secs(86_400);

/// How the audit trail of a node is kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct AuditConfig {
    /// Whether the store has a copy of every line.
    pub(crate) keep_in_store: bool,
    pub(crate) segments: SegmentSettings,
}

pub(super) fn audit(from: &mut Reader) -> AuditConfig {
    from.table(
        "audit",
        "The audit trail, a file in the data folder of each node and the closed segments beside it.",
    );
    let mut segments = SegmentSettings { daily: true, ..SegmentSettings::default() };
    let (mut keep_in_store, mut segment_mb, mut retain_days) = (false, segments.max_bytes / MEGABYTE, 0_u32);
    settings! { from;
        "keep_in_store": boolean() => keep_in_store,
            "Whether the store has a copy of every line, so that one machine can verify the trails of all nodes";
        "segment_mb": whole(1, 1_024) => segment_mb,
            "A segment of the trail is closed when it is so large, in megabytes, and with the first line of a new day (UTC)";
        "compress": boolean() => segments.compress,
            "Whether closed segments are compressed, as `zcat` reads them";
        "retain_days": whole(0, 36_500) => retain_days,
            "How many days closed segments are kept; 0 for ever. The trail records what is cut, and verifies without it";
    }
    let about = "A file on another disk or machine, to which the end of each closed segment is appended; \
                 `quarterdeck audit verify` compares it, so that a trail that was rewritten together with its store is found";
    segments.seal_file = from.optional("seal_file", file(), about);
    segments.max_bytes = segment_mb * MEGABYTE;
    segments.retain = (retain_days > 0).then(|| DAY * retain_days);
    AuditConfig { keep_in_store, segments }
}
