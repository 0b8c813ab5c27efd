//! What happens with one server, counted over all its connections.

use std::sync::atomic::{AtomicU64, Ordering};

use quarterdeck_contracts::UpstreamOutcome;

/// Counted since the start. Nothing else is decided by these numbers, so that they need no order among themselves.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    calls: AtomicU64,
    failures: AtomicU64,
    restarts: AtomicU64,
    refused_requests: AtomicU64,
    refused_messages: AtomicU64,
    ignored_messages: AtomicU64,
}

fn add(counter: &AtomicU64) -> u64 {
    counter.fetch_add(1, Ordering::Relaxed) + 1
}

impl Counters {
    pub(crate) fn count_call(&self, outcome: UpstreamOutcome) {
        if outcome.is_sent() {
            add(&self.calls);
        }
        if outcome.is_failure() {
            add(&self.failures);
        }
    }

    /// Returns how many there were.
    pub(crate) fn count_restart(&self) -> u64 {
        add(&self.restarts)
    }

    pub(crate) fn count_refused_request(&self) {
        add(&self.refused_requests);
    }

    pub(crate) fn count_refused_message(&self) {
        add(&self.refused_messages);
    }

    pub(crate) fn count_ignored_message(&self) {
        add(&self.ignored_messages);
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    pub(crate) fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::Relaxed)
    }

    pub(crate) fn refused_requests(&self) -> u64 {
        self.refused_requests.load(Ordering::Relaxed)
    }

    pub(crate) fn refused_messages(&self) -> u64 {
        self.refused_messages.load(Ordering::Relaxed)
    }

    /// Answers that nothing waits for, and what came faster than it is read.
    pub(crate) fn ignored_messages(&self) -> u64 {
        self.ignored_messages.load(Ordering::Relaxed)
    }
}
