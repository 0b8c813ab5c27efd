//! Counts the lines that could not be written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many lines of a log could not be written: all of them, and those that no later line tells of yet. Clones share
/// their counts.
#[derive(Debug, Clone, Default)]
pub struct LostLines(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    total: AtomicU64,
    untold: AtomicU64,
}

impl LostLines {
    /// All since the log was opened; never less than before, as a counter of metrics must be.
    pub fn total(&self) -> u64 {
        self.0.total.load(Ordering::Relaxed)
    }

    /// Those that the log itself does not tell of yet.
    pub fn untold(&self) -> u64 {
        self.0.untold.load(Ordering::Relaxed)
    }

    pub(super) fn add_one(&self) {
        self.0.total.fetch_add(1, Ordering::Relaxed);
        self.0.untold.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes those for the next line to tell of.
    pub(super) fn take_untold(&self) -> u64 {
        self.0.untold.swap(0, Ordering::Relaxed)
    }

    /// The line that was to tell of them could not be written either.
    pub(super) fn put_back(&self, untold: u64) {
        self.0.untold.fetch_add(untold, Ordering::Relaxed);
    }
}
