//! A turn while it runs: what has happened so far, for everybody who follows it.
//!
//! The turn writes, any number of readers follow, and one that comes late is told everything from the start. When the
//! last one leaves, the turn is told, because nobody waits for it any more.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

use super::event::Event;

/// How many bytes of events one turn may leave. A model that writes more than this is cut.
const MOST_BYTES: usize = 8 << 20;

/// A turn that can be followed.
#[derive(Debug, Default)]
pub(super) struct Live {
    told: Mutex<ToldSoFar>,
    /// Wakes the turn when nobody follows it any more.
    deserted: Notify,
}

#[derive(Debug, Default)]
struct ToldSoFar {
    events: Vec<Event>,
    bytes: usize,
    is_over: bool,
    readers: usize,
    waiting: Vec<Waker>,
}

/// Follows a turn from its beginning.
#[derive(Debug)]
pub struct Reader {
    live: Arc<Live>,
    next: usize,
}

/// There is no room for more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

impl Live {
    /// Events that happened elsewhere, for someone who asks again.
    pub(super) fn over(events: Vec<Event>) -> Arc<Self> {
        let told = ToldSoFar { events, is_over: true, ..ToldSoFar::default() };
        Arc::new(Self { told: Mutex::new(told), deserted: Notify::new() })
    }

    pub(super) fn push(&self, event: Event) -> Result<(), Full> {
        let waiting = {
            let mut told = self.lock();
            told.bytes += size_of::<Event>() + event.size();
            let is_text = matches!(event, Event::Text(_) | Event::Thought(_));
            if told.bytes > MOST_BYTES && is_text {
                return Err(Full);
            }
            told.events.push(event);
            std::mem::take(&mut told.waiting)
        };
        wake(waiting);
        Ok(())
    }

    /// Nothing more will come.
    pub(super) fn close(&self) {
        let waiting = {
            let mut told = self.lock();
            told.is_over = true;
            std::mem::take(&mut told.waiting)
        };
        wake(waiting);
    }

    pub(super) fn is_over(&self) -> bool {
        self.lock().is_over
    }

    pub(super) fn is_deserted(&self) -> bool {
        self.lock().readers == 0
    }

    /// Waits until the last reader has left.
    pub(super) async fn deserted(&self) {
        loop {
            let deserted = self.deserted.notified();
            if self.lock().readers == 0 {
                return;
            }
            deserted.await;
        }
    }

    /// Waits until nothing more will come.
    pub(super) async fn ended(&self) {
        std::future::poll_fn(|context| {
            let mut told = self.lock();
            if told.is_over {
                return Poll::Ready(());
            }
            told.wait(context);
            Poll::Pending
        })
        .await;
    }

    pub(super) fn follow(self: &Arc<Self>) -> Reader {
        self.lock().readers += 1;
        Reader { live: self.clone(), next: 0 }
    }

    fn lock(&self) -> MutexGuard<'_, ToldSoFar> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ToldSoFar {
    fn wait(&mut self, context: &Context<'_>) {
        if !self.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            self.waiting.push(context.waker().clone());
        }
    }
}

impl Reader {
    /// Hands over everything that has happened since the last time, without copying it. `Ready(false)` says that
    /// nothing more will come.
    pub fn poll_events(&mut self, context: &Context<'_>, mut each: impl FnMut(&Event)) -> Poll<bool> {
        let mut told = self.live.lock();
        if self.next < told.events.len() {
            told.events[self.next..].iter().for_each(&mut each);
            self.next = told.events.len();
            return Poll::Ready(true);
        }
        if told.is_over {
            return Poll::Ready(false);
        }
        told.wait(context);
        Poll::Pending
    }

    /// Everything that has happened since the last time; `None` at the end.
    pub async fn next(&mut self) -> Option<Vec<Event>> {
        std::future::poll_fn(|context| {
            let mut events = Vec::new();
            self.poll_events(context, |event| events.push(event.clone())).map(|more| more.then_some(events))
        })
        .await
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut told = self.live.lock();
        told.readers -= 1;
        let is_deserted = told.readers == 0;
        drop(told);
        if is_deserted {
            self.live.deserted.notify_waiters();
        }
    }
}

impl Event {
    /// Roughly, beyond the event itself.
    fn size(&self) -> usize {
        match self {
            Self::Text(text) | Self::Thought(text) => text.len(),
            _ => 256,
        }
    }
}

fn wake(waiting: Vec<Waker>) {
    for waker in waiting {
        waker.wake();
    }
}
