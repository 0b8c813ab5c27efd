//! What waits to be sent: bounded in number and in bytes; no caller waits for it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// How many items wait at most.
pub(crate) const MAX_QUEUED: usize = 4_096;
/// How many bytes of them, roughly.
pub(crate) const MAX_QUEUED_BYTES: usize = 16 << 20;
/// How many are sent at once.
pub(crate) const MAX_BATCH: usize = 512;
/// How many bytes are sent at once, roughly.
const MAX_BATCH_BYTES: usize = 2 << 20;

/// Knows about how many bytes it takes.
pub(crate) trait Measured {
    fn bytes(&self) -> usize;
}

#[derive(Debug)]
pub(crate) struct Queue<T> {
    waiting: Mutex<Waiting<T>>,
    /// Wakes the sender when a batch is full, or nothing more will come.
    ready: Notify,
    closed: Notify,
}

#[derive(Debug)]
struct Waiting<T> {
    items: VecDeque<T>,
    bytes: usize,
    is_closed: bool,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        let waiting = Waiting { items: VecDeque::new(), bytes: 0, is_closed: false };
        Self { waiting: Mutex::new(waiting), ready: Notify::new(), closed: Notify::new() }
    }
}

impl<T: Measured> Queue<T> {
    /// `false` when it is full: the newest is dropped, because the oldest tell how it began.
    pub(crate) fn push(&self, item: T) -> bool {
        let bytes = item.bytes();
        let mut waiting = self.lock();
        if waiting.is_closed || waiting.items.len() >= MAX_QUEUED || waiting.bytes + bytes > MAX_QUEUED_BYTES
        {
            return false;
        }
        waiting.bytes += bytes;
        waiting.items.push_back(item);
        let is_batch = waiting.items.len() == MAX_BATCH;
        drop(waiting);
        if is_batch {
            self.ready.notify_one();
        }
        true
    }

    /// The next batch; empty when nothing waits.
    pub(crate) fn take_batch(&self) -> Vec<T> {
        let mut waiting = self.lock();
        let mut batch = Vec::new();
        let mut bytes = 0;
        while batch.len() < MAX_BATCH && bytes < MAX_BATCH_BYTES {
            let Some(item) = waiting.items.pop_front() else { break };
            bytes += item.bytes();
            batch.push(item);
        }
        waiting.bytes = waiting.bytes.saturating_sub(bytes);
        batch
    }

    /// Takes nothing more.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.ready.notify_one();
        self.closed.notify_one();
    }

    /// Waits until nothing more will come.
    pub(crate) async fn wait_for_close(&self) {
        let closed = self.closed.notified();
        if !self.is_closed() {
            closed.await;
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Waits until a batch is full, or the queue is closed.
    pub(crate) async fn wait_for_batch(&self) {
        let is_ready = |waiting: &Waiting<T>| waiting.is_closed || waiting.items.len() >= MAX_BATCH;
        if !is_ready(&self.lock()) {
            self.ready.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Measured for usize {
        fn bytes(&self) -> usize {
            *self
        }
    }

    #[test]
    fn a_full_queue_drops_the_newest_by_number_and_by_bytes() {
        let queue = Queue::default();
        let taken = (0..MAX_QUEUED + 10).filter(|_| queue.push(1_usize)).count();
        assert_eq!(taken, MAX_QUEUED);
        let large = Queue::default();
        assert!(large.push(MAX_QUEUED_BYTES) && !large.push(1_usize));
        assert_eq!(large.take_batch(), [MAX_QUEUED_BYTES]);
        assert!(large.push(1));
    }

    #[test]
    fn batches_are_bounded_and_a_closed_queue_still_gives_what_it_has() {
        let queue = Queue::default();
        (0..MAX_BATCH + 1).for_each(|_| assert!(queue.push(1_usize)));
        queue.close();
        assert!(!queue.push(1));
        assert_eq!((queue.take_batch().len(), queue.take_batch().len()), (MAX_BATCH, 1));
    }
}
