//! When an engine has to stop, and how much it may say.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// One execution's end, asked for by the engine's interrupt handler every few thousand operations.
#[derive(Debug)]
pub(crate) struct Control {
    deadline: Instant,
    begun: AtomicBool,
    stopped: AtomicBool,
}

impl Control {
    pub(crate) fn until(deadline: Instant) -> Self {
        Self { deadline, begun: AtomicBool::new(false), stopped: AtomicBool::new(false) }
    }

    /// A thread has taken it up.
    pub(crate) fn begin(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    /// Nobody waits for the answer any more.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || Instant::now() >= self.deadline
    }
}

/// How much one call may still say on one channel.
#[derive(Debug)]
pub(crate) struct Budget {
    left: usize,
    exhausted: bool,
}

/// What a budget allows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Allowance {
    Granted,
    /// No more, and this is the first time that it had to be refused.
    JustExhausted,
    Refused,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { left: bytes, exhausted: false }
    }

    /// Asks to say something of `bytes`. Each costs a little more than its text, so that empty ones end too.
    pub(crate) fn spend(&mut self, bytes: usize) -> Allowance {
        const EACH: usize = 32;
        let cost = bytes.saturating_add(EACH);
        if !self.exhausted && cost <= self.left {
            self.left -= cost;
            return Allowance::Granted;
        }
        match std::mem::replace(&mut self.exhausted, true) {
            false => Allowance::JustExhausted,
            true => Allowance::Refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_says_once_that_it_is_exhausted() {
        let mut budget = Budget::new(100);
        assert_eq!(budget.spend(60), Allowance::Granted);
        assert_eq!(budget.spend(0), Allowance::JustExhausted);
        assert_eq!(budget.spend(0), Allowance::Refused);
    }
}
