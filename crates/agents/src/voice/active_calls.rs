//! The one place that a client has for a call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Inner;

/// A client's place, for as long as their call is on. Whatever ends the call gives it back.
pub(super) struct Seat {
    agent: Arc<Inner>,
    client: String,
    number: u64,
    has_line: Arc<AtomicBool>,
}

impl Seat {
    pub(super) fn new(agent: Arc<Inner>, client: String, number: u64, has_line: Arc<AtomicBool>) -> Self {
        Self { agent, client, number, has_line }
    }

    /// Whether somebody is on the line.
    pub(super) fn has_line(&self, has_line: bool) {
        self.has_line.store(has_line, Ordering::Release);
    }

    /// Says which session the call is.
    pub(super) fn settle(&self, session: &str) {
        let mut calls = self.agent.lock();
        if let Some(known) = calls.get_mut(&self.client).filter(|known| known.number == self.number) {
            known.session = Some(session.into());
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut calls = self.agent.lock();
        // Another call of the same client may have begun since.
        if calls.get(&self.client).is_some_and(|known| known.number == self.number) {
            calls.remove(&self.client);
        }
    }
}
