//! The event stream of a running turn.
//!
//! The turn writes, any number of readers follow, and one that comes late gets everything from the start, as far as
//! it is still there. The backlog is bounded: beyond it the oldest text is dropped, and a reader that had
//! not read it learns how much it has lost. When the last reader leaves, the turn is told, because no reader waits for
//! it any more.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

use super::event::StreamEvent;
use super::held::HeldBytes;

/// How many bytes of text one turn may have. A model that writes more is cut. It is what a million tokens come to, which
/// is the most that an answer can be configured to have.
pub(super) const MAX_ANSWER_BYTES: usize = 4 << 20;
/// How many bytes of events wait for readers that are behind, or come late.
pub(super) const MAX_BACKLOG_BYTES: usize = 1 << 20;
/// What is left of them when some were dropped, so that it is not done for every event.
const BACKLOG_GOAL_BYTES: usize = MAX_BACKLOG_BYTES / 4 * 3;
/// How far a turn may be ahead of its fastest reader before it waits for it.
const MAX_AHEAD_BYTES: u64 = MAX_BACKLOG_BYTES as u64 / 2;
/// How many bytes of events a reader is handed at once.
const MAX_READ_BYTES: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct EventStream {
    backlog: Mutex<Backlog>,
    /// Wakes the turn when the last reader leaves.
    abandoned: Notify,
    /// Wakes the turn when its fastest reader has read something.
    read: Notify,
}

#[derive(Debug, Default)]
struct Backlog {
    entries: VecDeque<Entry>,
    held: HeldBytes,
    /// How many bytes of text there were in all.
    words: usize,
    /// How many bytes of events there were in all, and how many of them the fastest reader has read.
    pushed: u64,
    read: u64,
    next: u64,
    is_closed: bool,
    readers: usize,
    waiting: Waiters,
}

/// Who waits for the next event. Nearly always that is one reader, which costs no allocation.
#[derive(Debug, Default)]
struct Waiters {
    first: Option<Waker>,
    more: Vec<Waker>,
}

/// An event, or the place of some that were dropped.
#[derive(Debug)]
struct Entry {
    /// The number of the event, or of the last of those that were dropped.
    number: u64,
    event: Option<StreamEvent>,
    bytes: usize,
    /// How many bytes of what can be dropped there were up to here, and of all events.
    droppable_until: u64,
    pushed_until: u64,
}

/// Follows a turn from its beginning.
#[derive(Debug)]
pub struct Reader {
    stream: Arc<EventStream>,
    next: u64,
    /// How many bytes of what can be dropped it knows of.
    seen: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AnswerTooLong;

/// Whether the readers keep up with the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    KeptUp,
    /// Even the fastest is far behind.
    Behind,
}

impl EventStream {
    /// A turn whose events are counted among those that are held.
    pub(super) fn new(held: HeldBytes) -> Arc<Self> {
        let backlog = Backlog { held, ..Backlog::default() };
        Arc::new(Self { backlog: Mutex::new(backlog), ..Self::default() })
    }

    /// The events of a turn that is over, for a repeated request.
    pub(super) fn of_finished(events: Vec<StreamEvent>, held: HeldBytes) -> Arc<Self> {
        let stream = Self::new(held);
        for event in events {
            for piece in event.pieces() {
                // It was short enough the first time.
                let _ = stream.push(piece);
            }
        }
        stream.close();
        stream
    }

    pub(super) fn push(&self, event: StreamEvent) -> Result<Pace, AnswerTooLong> {
        let (waiting, pace) = {
            let mut backlog = self.lock();
            backlog.push(event)?;
            let pace = if backlog.is_ahead() { Pace::Behind } else { Pace::KeptUp };
            (std::mem::take(&mut backlog.waiting), pace)
        };
        waiting.wake();
        Ok(pace)
    }

    /// Nothing more will come.
    pub(super) fn close(&self) {
        let waiting = {
            let mut backlog = self.lock();
            backlog.is_closed = true;
            std::mem::take(&mut backlog.waiting)
        };
        waiting.wake();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.lock().readers == 0
    }

    /// Whether even the fastest reader is far behind.
    pub(super) fn is_ahead(&self) -> bool {
        self.lock().is_ahead()
    }

    /// Waits until a reader reads, if even the fastest is far behind.
    pub(super) async fn wait_for_reader(&self) {
        let read = self.read.notified();
        if self.is_ahead() {
            read.await;
        }
    }

    /// Waits until the last reader has left.
    pub(super) async fn abandoned(&self) {
        loop {
            let abandoned = self.abandoned.notified();
            if self.lock().readers == 0 {
                return;
            }
            abandoned.await;
        }
    }

    /// Waits until nothing more will come.
    pub(super) async fn closed(&self) {
        std::future::poll_fn(|context| {
            let mut backlog = self.lock();
            if backlog.is_closed {
                return Poll::Ready(());
            }
            backlog.waiting.add(context.waker());
            Poll::Pending
        })
        .await;
    }

    pub(super) fn follow(self: &Arc<Self>) -> Reader {
        self.lock().readers += 1;
        Reader { stream: self.clone(), next: 0, seen: 0 }
    }

    fn lock(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backlog {
    fn push(&mut self, event: StreamEvent) -> Result<(), AnswerTooLong> {
        if let StreamEvent::Text(text) | StreamEvent::Thought(text) = &event {
            if self.words + text.len() > MAX_ANSWER_BYTES {
                return Err(AnswerTooLong);
            }
            self.words += text.len();
        }
        let bytes = size_of::<Entry>() + event.size();
        let before = self.entries.back().map_or(0, |entry| entry.droppable_until);
        let droppable = if event.is_droppable() { event.size() as u64 } else { 0 };
        self.pushed += bytes as u64;
        self.held.add(bytes);
        self.entries.push_back(Entry {
            number: self.next,
            event: Some(event),
            bytes,
            droppable_until: before + droppable,
            pushed_until: self.pushed,
        });
        self.next += 1;
        if self.held.bytes() > MAX_BACKLOG_BYTES {
            self.drop_oldest();
        }
        Ok(())
    }

    /// Drops the oldest text. Everything else stays: without it the rest would make no sense, and it is small, or held
    /// by the turn itself.
    fn drop_oldest(&mut self) {
        let mut kept: VecDeque<Entry> = VecDeque::new();
        for mut entry in std::mem::take(&mut self.entries) {
            let is_surplus = self.held.bytes() > BACKLOG_GOAL_BYTES
                && entry.event.as_ref().is_none_or(StreamEvent::is_droppable);
            if !is_surplus {
                kept.push_back(entry);
                continue;
            }
            self.held.take(entry.bytes);
            // Places that follow each other become one.
            if kept.back().is_some_and(|last| last.event.is_none()) {
                kept.pop_back().into_iter().for_each(|last| self.held.take(last.bytes));
            }
            entry.event = None;
            entry.bytes = size_of::<Entry>();
            self.held.add(entry.bytes);
            kept.push_back(entry);
        }
        kept.shrink_to_fit();
        self.entries = kept;
    }

    fn is_ahead(&self) -> bool {
        self.pushed - self.read > MAX_AHEAD_BYTES
    }

    /// Where the event with this number is, or the place of dropped ones that it is among.
    fn find(&self, number: u64) -> usize {
        // A reader that keeps up finds it at the end, where nothing has been dropped.
        let from_end = usize::try_from(self.next.saturating_sub(number)).unwrap_or(usize::MAX);
        let place = self.entries.len().saturating_sub(from_end);
        match self.entries.get(place) {
            None => place,
            Some(entry) if entry.number == number => place,
            Some(_) => self.entries.partition_point(|entry| entry.number < number),
        }
    }
}

impl Waiters {
    fn add(&mut self, waker: &Waker) {
        let is_known = |known: &Waker| known.will_wake(waker);
        if self.first.as_ref().is_some_and(is_known) || self.more.iter().any(is_known) {
            return;
        }
        match &mut self.first {
            None => self.first = Some(waker.clone()),
            Some(_) => self.more.push(waker.clone()),
        }
    }

    /// Not to be called while the backlog is locked: what is woken may read it at once.
    fn wake(self) {
        self.first.into_iter().chain(self.more).for_each(Waker::wake);
    }
}

impl Reader {
    /// Hands over what has happened since the last time, without copying it; when that is much, a part of it.
    /// `Ready(false)` says that nothing more will come.
    pub fn poll_events(&mut self, context: &Context<'_>, mut each: impl FnMut(&StreamEvent)) -> Poll<bool> {
        let mut backlog = self.stream.lock();
        let first = backlog.find(self.next);
        if first == backlog.entries.len() {
            if backlog.is_closed {
                return Poll::Ready(false);
            }
            backlog.waiting.add(context.waker());
            return Poll::Pending;
        }
        let mut bytes = 0;
        let mut read = 0;
        for entry in backlog.entries.range(first..) {
            match &entry.event {
                Some(event) => each(event),
                None => each(&StreamEvent::Lagged { bytes: entry.droppable_until - self.seen }),
            }
            bytes += entry.bytes;
            (self.next, self.seen, read) = (entry.number + 1, entry.droppable_until, entry.pushed_until);
            if bytes >= MAX_READ_BYTES {
                break;
            }
        }
        let was_ahead = backlog.is_ahead();
        let is_fastest = read > backlog.read;
        backlog.read = backlog.read.max(read);
        drop(backlog);
        if was_ahead && is_fastest {
            self.stream.read.notify_waiters();
        }
        Poll::Ready(true)
    }

    /// Whether there is something to read, or nothing more will come. It reads nothing.
    pub fn poll_ready(&mut self, context: &Context<'_>) -> Poll<()> {
        let mut backlog = self.stream.lock();
        if backlog.is_closed || backlog.find(self.next) < backlog.entries.len() {
            return Poll::Ready(());
        }
        backlog.waiting.add(context.waker());
        Poll::Pending
    }

    /// What has happened since the last time; `None` at the end.
    pub async fn next(&mut self) -> Option<Vec<StreamEvent>> {
        std::future::poll_fn(|context| {
            let mut events = Vec::new();
            self.poll_events(context, |event| events.push(event.clone())).map(|more| more.then_some(events))
        })
        .await
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut backlog = self.stream.lock();
        backlog.readers -= 1;
        let is_abandoned = backlog.readers == 0;
        drop(backlog);
        if is_abandoned {
            self.stream.abandoned.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests;
