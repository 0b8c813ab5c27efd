//! Whether a model answers, and since when it does not.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quarterdeck_contracts::{ChatError, ChatErrorKind};

/// From how many failures in a row on a model with a fallback is left alone for a while.
const MIN_FAILURES: u32 = 3;
/// For how long, unless it says itself when it wants to be asked again.
const PAUSE: Duration = Duration::from_secs(15);
/// How long it may ask to be left alone at most.
const MAX_PAUSE: Duration = Duration::from_secs(120);

/// Follows a model by its last requests. It fails from the first request that fails, and is well again with the first
/// that is answered.
#[derive(Debug, Default)]
pub(super) struct ModelHealth {
    failing: Mutex<Option<Failing>>,
}

/// A model that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failing {
    /// When the first of the failed requests in a row failed, in milliseconds since 1970.
    pub since_ms: u64,
    /// When the last one failed.
    pub last_ms: u64,
    /// How the last one failed.
    pub kind: ChatErrorKind,
    /// How many requests failed in a row.
    pub failures: u32,
    /// Until when it is not asked if another model can be.
    paused_until_ms: u64,
}

impl ModelHealth {
    pub(super) fn failing(&self) -> Option<Failing> {
        *self.lock()
    }

    /// A request was answered. Returns what it was until now, if it failed.
    pub(super) fn record_success(&self) -> Option<Failing> {
        self.lock().take()
    }

    /// A request failed. What is wrong with the conversation says nothing about the model.
    pub(super) fn record_failure(&self, error: &ChatError, now_ms: u64) {
        if !error.kind.is_model_trouble() {
            return;
        }
        let mut failing = self.lock();
        let (since_ms, before) = failing.map_or((now_ms, 0), |failing| (failing.since_ms, failing.failures));
        let failures = before.saturating_add(1);
        let pause = error.retry_after.unwrap_or(PAUSE).min(MAX_PAUSE).as_millis() as u64;
        let paused_until_ms = if failures < MIN_FAILURES { 0 } else { now_ms.saturating_add(pause) };
        *failing = Some(Failing { since_ms, last_ms: now_ms, kind: error.kind, failures, paused_until_ms });
    }

    /// Whether it has failed so often that another model is better asked at once.
    pub(super) fn is_paused(&self, now_ms: u64) -> bool {
        self.lock().is_some_and(|failing| now_ms < failing.paused_until_ms)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Failing>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(kind: ChatErrorKind, retry_after: Option<u64>) -> ChatError {
        let retry_after = retry_after.map(Duration::from_secs);
        ChatError { kind, model: "m".into(), detail: String::new(), retry_after, context: None }
    }

    #[test]
    fn a_model_fails_since_the_first_failure_in_a_row_and_is_well_with_the_first_answer() {
        let health = ModelHealth::default();
        assert_eq!(health.failing(), None);
        health.record_failure(&error(ChatErrorKind::Unreachable, None), 1_000);
        health.record_failure(&error(ChatErrorKind::RateLimited, None), 2_000);
        let failing = health.failing().unwrap();
        assert_eq!((failing.since_ms, failing.last_ms), (1_000, 2_000));
        assert_eq!((failing.kind, failing.failures), (ChatErrorKind::RateLimited, 2));
        assert_eq!(health.record_success(), Some(failing));
        assert_eq!((health.failing(), health.record_success()), (None, None));
        health.record_failure(&error(ChatErrorKind::Cut, None), 9_000);
        assert_eq!(health.failing().map(|failing| failing.since_ms), Some(9_000));
    }

    #[test]
    fn a_conversation_that_no_model_would_answer_says_nothing_about_the_model() {
        let health = ModelHealth::default();
        health.record_failure(&error(ChatErrorKind::TooLong, None), 1);
        health.record_failure(&error(ChatErrorKind::Refused, None), 2);
        assert_eq!(health.failing(), None);
    }

    #[test]
    fn a_model_is_left_alone_after_three_failures_and_tried_again() {
        let health = ModelHealth::default();
        for at in 1..=2 {
            health.record_failure(&error(ChatErrorKind::Overloaded, None), at);
            assert!(!health.is_paused(at), "a model is asked again at once after {at}");
        }
        health.record_failure(&error(ChatErrorKind::Overloaded, None), 1_000);
        assert!(health.is_paused(15_999) && !health.is_paused(16_000));
        health.record_failure(&error(ChatErrorKind::RateLimited, Some(40)), 20_000);
        assert!(health.is_paused(59_999) && !health.is_paused(60_000), "as long as it asks for");
        health.record_failure(&error(ChatErrorKind::RateLimited, Some(9_999)), 100_000);
        assert!(!health.is_paused(220_000), "within reason");
        health.record_success();
        assert!(!health.is_paused(100_001));
    }
}
