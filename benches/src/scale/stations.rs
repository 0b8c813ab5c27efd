//! What work waits for: servers that take one job each, and a disk that syncs everything that waits at once.

use std::collections::VecDeque;

/// So many servers and one queue, first come first served. A pool of connections is one as well.
pub(crate) struct Station<J> {
    servers: usize,
    busy: usize,
    waiting: VecDeque<J>,
    busy_seconds: f64,
    changed_at: f64,
}

impl<J> Station<J> {
    pub(crate) fn new(servers: usize) -> Self {
        Self { servers, busy: 0, waiting: VecDeque::new(), busy_seconds: 0.0, changed_at: 0.0 }
    }

    /// Gives the job back if it is served at once; keeps it otherwise.
    pub(crate) fn enter(&mut self, job: J, now: f64) -> Option<J> {
        self.count(now);
        if self.busy < self.servers {
            self.busy += 1;
            return Some(job);
        }
        self.waiting.push_back(job);
        None
    }

    /// A server is free. Gives the job that it serves next.
    pub(crate) fn leave(&mut self, now: f64) -> Option<J> {
        self.count(now);
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.busy -= 1;
        }
        next
    }

    fn count(&mut self, now: f64) {
        self.busy_seconds += self.busy as f64 * (now - self.changed_at);
        self.changed_at = now;
    }

    /// The part of all servers' time that was spent on jobs.
    pub(crate) fn utilisation(&mut self, now: f64) -> f64 {
        self.count(now);
        self.busy_seconds / (now * self.servers as f64)
    }
}

/// A log whose sync makes everything durable that was written before it began. Jobs that come while it runs share the next.
pub(crate) struct Log<J> {
    syncing: Vec<J>,
    waiting: Vec<J>,
    pub(crate) syncs: u64,
}

impl<J> Log<J> {
    pub(crate) fn new() -> Self {
        Self { syncing: Vec::new(), waiting: Vec::new(), syncs: 0 }
    }

    /// Whether a sync begins with this job.
    pub(crate) fn enter(&mut self, job: J) -> bool {
        if self.syncing.is_empty() {
            self.syncing.push(job);
            self.syncs += 1;
            return true;
        }
        self.waiting.push(job);
        false
    }

    /// The sync is over: gives what is durable now, and whether the next one begins.
    pub(crate) fn finish(&mut self) -> (Vec<J>, bool) {
        let done = std::mem::replace(&mut self.syncing, std::mem::take(&mut self.waiting));
        let again = !self.syncing.is_empty();
        self.syncs += u64::from(again);
        (done, again)
    }
}
