//! The state of the provider connection: when to connect, when to wait, and when to give up.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{LiveError, LiveErrorKind};
use tokio::time::Instant;

use crate::voice::answers::AnswerId;

/// How long to wait before each attempt to reconnect. After the last one the call has failed.
const RETRY_BACKOFF: [Duration; 6] = [
    Duration::ZERO,
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];
/// How long before a provider closes its connection another one is opened at the latest.
const HANDOVER_LEAD: Duration = Duration::from_secs(3);
/// How long all attempts may take together.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// After how long a connection counts as a good one, even if nothing was said.
const STABLE_AFTER: Duration = Duration::from_secs(10);
/// How many connections in a row may be rejected because their context is out of date.
const MAX_REJECTED: u32 = 3;
/// How long a connection is taken to last when the provider does not say, and at the most.
const DEFAULT_TIME_LEFT: Duration = Duration::from_secs(10);
const MAX_TIME_LEFT: Duration = Duration::from_secs(3_600);

#[derive(Debug)]
pub(super) struct ConnectionState {
    /// The model's name, which resumption handles belong to.
    pub(super) model: Arc<str>,
    /// Counts connections: a result belongs to the one that asked.
    pub(super) generation: u64,
    pub(super) is_connected: bool,
    pub(super) is_connecting: bool,
    /// What the connection that is being opened knows.
    pub(super) replayed: ReplayMark,
    /// Answers that were queued for the provider and may not have been sent.
    pub(super) unsent: Vec<AnswerId>,
    rejected: u32,
    /// Attempts since the last good connection.
    attempts: usize,
    failing_since: Option<Instant>,
    opened_at: Option<Instant>,
    retry_at: Option<Instant>,
    /// When the provider will close the present connection.
    closes_at: Option<Instant>,
}

/// How far a context replay goes.
#[derive(Debug, Default)]
pub(super) struct ReplayMark {
    pub(super) last_note: u64,
    /// The revision of the journal, and how many turns it had.
    pub(super) revision: u64,
    pub(super) turns: usize,
    /// What the user had said in the present turn, and whether it waited for an answer.
    pub(super) user_text: String,
    pub(super) awaits_answer: bool,
    pub(super) with_handle: bool,
    pub(super) asks: bool,
}

/// What to do after a connection was lost or could not be opened.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Retry {
    Now,
    /// At a time that [`ConnectionState::is_due`] knows.
    Later,
    /// At once and without the handle, which was refused.
    WithoutHandle,
    GiveUp,
}

impl ConnectionState {
    pub(super) fn new(model: Arc<str>) -> Self {
        Self {
            model,
            generation: 0,
            is_connected: false,
            is_connecting: false,
            replayed: ReplayMark::default(),
            unsent: Vec::new(),
            rejected: 0,
            attempts: 0,
            failing_since: None,
            opened_at: None,
            retry_at: None,
            closes_at: None,
        }
    }

    /// An attempt begins, beside a connection that may still stand.
    pub(super) fn begin_attempt(&mut self, replayed: ReplayMark) {
        self.replayed = replayed;
        self.retry_at = None;
        self.attempts += 1;
        self.is_connecting = true;
    }

    /// Whether it is time to connect: to try again, or because the provider closes the connection and no one is talking.
    pub(super) fn is_due(&self, is_idle: bool, now: Instant) -> bool {
        match (self.is_connecting, self.retry_at) {
            (true, _) => false,
            (false, Some(at)) => at <= now,
            (false, None) => self
                .closes_at
                .is_some_and(|at| is_idle || (at <= now + HANDOVER_LEAD && self.rejected < MAX_REJECTED)),
        }
    }

    /// The provider will close the connection.
    pub(super) fn on_going_away(&mut self, left: Option<Duration>, now: Instant) {
        self.closes_at = Some(now + left.unwrap_or(DEFAULT_TIME_LEFT).min(MAX_TIME_LEFT));
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closes_at.is_some()
    }

    /// The present connection has shown that it works.
    pub(super) fn mark_stable(&mut self) {
        (self.attempts, self.failing_since) = (0, None);
    }

    pub(super) fn tick(&mut self, now: Instant) {
        if self.is_connected && self.is_old_enough(now) {
            self.mark_stable();
        }
    }

    fn is_old_enough(&self, now: Instant) -> bool {
        self.opened_at.is_some_and(|at| now.saturating_duration_since(at) >= STABLE_AFTER)
    }

    pub(super) fn accept(&mut self, now: Instant) {
        self.is_connected = true;
        self.generation += 1;
        self.rejected = 0;
        self.closes_at = None;
        self.opened_at = Some(now);
    }

    /// After too many rejections the next connection is opened in a pause, or when the older one is lost.
    pub(super) fn reject(&mut self) {
        self.rejected += 1;
    }

    pub(super) fn on_lost(&mut self) {
        self.is_connected = false;
        self.closes_at = None;
    }

    /// What to do after a loss. A connection that has never worked is a failed attempt.
    pub(super) fn after_loss(&mut self, error: &LiveError, now: Instant) -> Retry {
        if self.is_old_enough(now) {
            self.mark_stable();
        }
        self.opened_at = None;
        if self.attempts == 0 {
            return Retry::Now;
        }
        if self.is_refused_handle(error) {
            return Retry::WithoutHandle;
        }
        self.retry_later(now)
    }

    /// What to do after an attempt that failed.
    pub(super) fn after_failure(&mut self, error: &LiveError, now: Instant) -> Retry {
        if self.is_refused_handle(error) {
            return Retry::WithoutHandle;
        }
        let retry = if error.kind.is_retryable() { self.retry_later(now) } else { Retry::GiveUp };
        // A connection that still stands is better than none.
        if retry == Retry::GiveUp && self.is_connected {
            self.retry_at = Some(now + RETRY_BACKOFF[RETRY_BACKOFF.len() - 1]);
            return Retry::Later;
        }
        retry
    }

    fn is_refused_handle(&self, error: &LiveError) -> bool {
        error.kind == LiveErrorKind::Refused && self.replayed.with_handle
    }

    fn retry_later(&mut self, now: Instant) -> Retry {
        let since = *self.failing_since.get_or_insert(now);
        let has_time = now.saturating_duration_since(since) < RECONNECT_TIMEOUT;
        let Some(backoff) = RETRY_BACKOFF.get(self.attempts).filter(|_| has_time) else {
            return Retry::GiveUp;
        };
        self.retry_at = Some(now + *backoff);
        Retry::Later
    }
}
