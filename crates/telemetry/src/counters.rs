//! What became of everything that was reported.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of all signals.
#[derive(Debug, Default)]
pub struct Counters {
    pub spans: SignalCounts,
    pub logs: SignalCounts,
    /// Exports of metrics.
    pub metrics: SignalCounts,
    /// Spans of traces that sampling has left out.
    pub sampled_out: Count,
}

/// What became of one signal.
#[derive(Debug, Default)]
pub struct SignalCounts {
    /// Taken by the collector.
    pub exported: Count,
    /// Dropped because too many waited.
    pub overflowed: Count,
    /// Dropped because the collector did not take them.
    pub failed: Count,
}

/// Only ever grows.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, number: usize) {
        self.0.fetch_add(number as u64, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
