//! When an engine has to stop, and how much output it may write.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How long an engine may take to be torn down.
const TEARDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// One execution's end, asked for by the engine's interrupt handler every few thousand operations.
#[derive(Debug)]
pub(crate) struct Control {
    deadline: Instant,
    begun: AtomicBool,
    /// Set when no caller waits for the answer any more.
    stopped: OnceLock<Instant>,
    /// Set when the handler has ended, and its engine is torn down.
    ended: OnceLock<Instant>,
}

impl Control {
    pub(crate) fn until(deadline: Instant) -> Self {
        Self { deadline, begun: AtomicBool::new(false), stopped: OnceLock::new(), ended: OnceLock::new() }
    }

    /// A thread has taken it up.
    pub(crate) fn begin(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    /// No caller waits for the answer any more.
    pub(crate) fn stop(&self) {
        let _ = self.stopped.set(Instant::now());
    }

    /// The handler has ended.
    pub(crate) fn end(&self) {
        let _ = self.ended.set(Instant::now());
    }

    pub(crate) fn is_over(&self) -> bool {
        self.stopped.get().is_some() || Instant::now() >= self.deadline
    }

    /// When the thread should be free.
    fn over_at(&self) -> Instant {
        match (self.ended.get(), self.stopped.get()) {
            (Some(ended), _) => *ended + TEARDOWN_TIMEOUT,
            (None, Some(stopped)) => self.deadline.min(*stopped),
            (None, None) => self.deadline,
        }
    }
}

/// How long work may hold a thread.
#[derive(Clone)]
pub(crate) enum TimeLimit {
    /// Until a call's end.
    Call(Arc<Control>),
    /// For so long from its start.
    Within(Duration),
    /// For tearing an engine down, which runs no code of the handler's.
    Teardown,
}

impl TimeLimit {
    /// Whether there is nothing left to run: what waits for a thread only lets go of what it holds.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Self::Call(control) => control.is_over(),
            Self::Within(_) => false,
            Self::Teardown => true,
        }
    }

    /// When a thread that began at `since` should be free.
    pub(crate) fn over_at(&self, since: Instant) -> Instant {
        match self {
            Self::Call(control) => control.over_at(),
            Self::Within(limit) => since + *limit,
            Self::Teardown => since + TEARDOWN_TIMEOUT,
        }
    }
}

/// How much one call may still write to log, audit or progress.
#[derive(Debug)]
pub(crate) struct Quota {
    left: usize,
    exhausted: bool,
}

/// Whether output is within the quota.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum QuotaVerdict {
    Granted,
    /// No more, and this is the first time that it had to be refused.
    JustExhausted,
    Refused,
}

impl Quota {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { left: bytes, exhausted: false }
    }

    /// Charges a message of `bytes`. Each costs a little more than its text, so that empty ones end too.
    pub(crate) fn spend(&mut self, bytes: usize) -> QuotaVerdict {
        const MESSAGE_OVERHEAD_BYTES: usize = 32;
        let cost = bytes.saturating_add(MESSAGE_OVERHEAD_BYTES);
        if !self.exhausted && cost <= self.left {
            self.left -= cost;
            return QuotaVerdict::Granted;
        }
        match std::mem::replace(&mut self.exhausted, true) {
            false => QuotaVerdict::JustExhausted,
            true => QuotaVerdict::Refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_reports_once_that_it_is_exhausted() {
        let mut quota = Quota::new(100);
        assert_eq!(quota.spend(60), QuotaVerdict::Granted);
        assert_eq!(quota.spend(0), QuotaVerdict::JustExhausted);
        assert_eq!(quota.spend(0), QuotaVerdict::Refused);
    }
}
