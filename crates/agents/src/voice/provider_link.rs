//! The model's end of a call: a connection that may be lost, replaced, and found again.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use quarterdeck_contracts::{
    LiveConnecting, LiveConnection, LiveError, LiveErrorKind, LiveInput, LiveModel, LiveSetup,
};
use tokio::time::Instant;

/// How long to wait before each attempt to find the model again. After the last one the call has failed.
const PAUSES: [Duration; 6] = [
    Duration::ZERO,
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];

/// How long before a provider closes its connection another one is opened at the latest.
const HANDOVER: Duration = Duration::from_secs(3);
/// How long all attempts may take together. Nobody waits longer for an answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// After how long a connection is taken to be a good one, even if nothing was said.
const SETTLED: Duration = Duration::from_secs(10);
/// How often a connection may be given up because it was told what is no longer so.
const MOST_REJECTED: u32 = 3;

/// The model's end.
pub(super) struct Upstream {
    model: Arc<dyn LiveModel>,
    live: Option<Box<dyn LiveConnection>>,
    /// Counts connections: a result belongs to the one that asked.
    generation: u64,
    connecting: Option<LiveConnecting>,
    /// A connection that stands and was not accepted yet.
    candidate: Option<Box<dyn LiveConnection>>,
    rejected: u32,
    /// Attempts since the last connection that was a good one.
    attempts: usize,
    failing_since: Option<Instant>,
    opened_at: Option<Instant>,
    retry_at: Option<Instant>,
    /// When the provider will close the present connection.
    leaves_at: Option<Instant>,
    is_dirty: bool,
}

/// What has happened at the model's end.
#[derive(Debug)]
pub(super) enum News {
    /// There is more to read.
    Arrived,
    /// A new connection stands.
    Opened,
    /// The connection is gone.
    Lost(LiveError),
    /// A connection could not be opened.
    NotOpened(LiveError),
}

/// What comes after a failed attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Another one.
    Now,
    /// Another one, later.
    Later,
    /// Another one at once, without the handle, which was refused.
    WithoutHandle,
    /// None.
    GiveUp,
}

impl Upstream {
    pub(super) fn new(model: Arc<dyn LiveModel>) -> Self {
        Self {
            model,
            live: None,
            generation: 0,
            connecting: None,
            candidate: None,
            rejected: 0,
            attempts: 0,
            failing_since: None,
            opened_at: None,
            retry_at: None,
            leaves_at: None,
            is_dirty: false,
        }
    }

    pub(super) fn name(&self) -> &str {
        self.model.name()
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn is_connected(&self) -> bool {
        self.live.is_some()
    }

    pub(super) fn is_connecting(&self) -> bool {
        self.connecting.is_some()
    }

    pub(super) fn live(&mut self) -> Option<&mut Box<dyn LiveConnection>> {
        self.live.as_mut()
    }

    /// Puts something in line. `false` when nobody is there.
    pub(super) fn send(&mut self, input: LiveInput<'_>) -> bool {
        let Some(live) = &mut self.live else { return false };
        live.send(input);
        self.is_dirty = true;
        true
    }

    /// Whether everything that was put in line was sent.
    pub(super) fn is_flushed(&self) -> bool {
        !self.is_dirty
    }

    /// Begins to connect, beside a connection that still stands.
    pub(super) fn connect(&mut self, opening: LiveSetup) {
        self.retry_at = None;
        self.attempts += 1;
        self.connecting = Some(self.model.connect(opening));
    }

    /// Whether it is time to connect: to try again, or because the provider goes away and nobody would notice.
    pub(super) fn is_due(&self, now: Instant, is_idle: bool) -> bool {
        match (self.connecting.is_some(), self.retry_at) {
            (true, _) => false,
            (false, Some(at)) => at <= now,
            (false, None) => self
                .leaves_at
                .is_some_and(|at| is_idle || (at <= now + HANDOVER && self.rejected < MOST_REJECTED)),
        }
    }

    /// The provider will close the connection.
    pub(super) fn leaves(&mut self, at: Instant) {
        self.leaves_at = Some(at);
    }

    /// When the provider will close the connection.
    pub(super) fn leaves_at(&self) -> Option<Instant> {
        self.leaves_at
    }

    /// The present connection has shown that it works.
    pub(super) fn settled(&mut self) {
        (self.attempts, self.failing_since) = (0, None);
    }

    /// Looks whether the present connection has lived long enough to be a good one.
    pub(super) fn look_at(&mut self, now: Instant) {
        if self.live.is_some() && self.opened_at.is_some_and(|at| now - at >= SETTLED) {
            self.settled();
        }
    }

    /// What to do after a connection was lost. One that has never worked is a failed attempt.
    pub(super) fn after_loss(&mut self, error: &LiveError, with_handle: bool, now: Instant) -> Next {
        self.look_at_lost(now);
        if self.attempts == 0 {
            return Next::Now;
        }
        if error.kind == LiveErrorKind::Refused && with_handle {
            return Next::WithoutHandle;
        }
        self.later(now)
    }

    fn look_at_lost(&mut self, now: Instant) {
        if self.opened_at.take().is_some_and(|at| now - at >= SETTLED) {
            self.settled();
        }
    }

    fn later(&mut self, now: Instant) -> Next {
        let since = *self.failing_since.get_or_insert(now);
        let Some(pause) = PAUSES.get(self.attempts).filter(|_| now - since < PATIENCE) else {
            return Next::GiveUp;
        };
        self.retry_at = Some(now + *pause);
        Next::Later
    }

    /// What to do after an attempt that failed.
    pub(super) fn after_failure(&mut self, error: &LiveError, with_handle: bool, now: Instant) -> Next {
        if error.kind == LiveErrorKind::Refused && with_handle {
            return Next::WithoutHandle;
        }
        let next = if error.kind.is_retryable() { self.later(now) } else { Next::GiveUp };
        // A connection that still stands is better than none.
        if next == Next::GiveUp && self.live.is_some() {
            self.retry_at = Some(now + PAUSES[PAUSES.len() - 1]);
            return Next::Later;
        }
        next
    }

    /// Sends what waits and sees what has happened.
    pub(super) fn poll(&mut self, context: &mut Context<'_>, may_read: bool) -> Poll<News> {
        if let Some(connecting) = &mut self.connecting
            && let Poll::Ready(connected) = connecting.as_mut().poll(context)
        {
            self.connecting = None;
            return Poll::Ready(match connected {
                Ok(live) => {
                    self.candidate = Some(live);
                    News::Opened
                }
                Err(error) => News::NotOpened(error),
            });
        }
        let Some(live) = &mut self.live else { return Poll::Pending };
        if self.is_dirty {
            match live.poll_flush(context) {
                Poll::Ready(Ok(())) => self.is_dirty = false,
                Poll::Ready(Err(error)) => return Poll::Ready(self.lost(error)),
                Poll::Pending => {}
            }
        }
        if !may_read {
            return Poll::Pending;
        }
        match live.poll_fill(context) {
            Poll::Ready(Ok(())) => Poll::Ready(News::Arrived),
            Poll::Ready(Err(error)) => Poll::Ready(self.lost(error)),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Sends what waits, as far as that can be done at once.
    pub(super) fn flush_now(&mut self, context: &mut Context<'_>) {
        if self.is_dirty
            && let Some(live) = &mut self.live
            && let Poll::Ready(Ok(())) = live.poll_flush(context)
        {
            self.is_dirty = false;
        }
    }

    /// Takes the connection that stands instead of the older one.
    pub(super) fn accept(&mut self) {
        let Some(live) = self.candidate.take() else { return };
        if let Some(old) = self.live.replace(live) {
            tokio::spawn(old.close());
        }
        self.generation += 1;
        self.rejected = 0;
        self.leaves_at = None;
        self.opened_at = Some(Instant::now());
        // What stands at the beginning of a conversation is in line already.
        self.is_dirty = true;
    }

    /// Gives up the connection that was opened. When that was done too often, the next one is opened in a pause or when
    /// the older one is lost.
    pub(super) fn reject(&mut self) {
        self.rejected += 1;
        if let Some(live) = self.candidate.take() {
            tokio::spawn(live.close());
        }
    }

    fn lost(&mut self, error: LiveError) -> News {
        self.live = None;
        self.is_dirty = false;
        self.leaves_at = None;
        News::Lost(error)
    }

    /// Says goodbye.
    pub(super) async fn close(&mut self) {
        self.connecting = None;
        if let Some(live) = self.live.take() {
            live.close().await;
        }
    }
}
