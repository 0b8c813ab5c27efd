//! A client's connection to its session, and the queue of events for it.

use std::sync::Arc;

use super::events::ClientEvent;
use super::{ConfirmationMode, Session, SessionCore, SessionData};

/// A client's way to its session. A new one takes over from an older one; dropping it leaves the session to be resumed.
pub struct Connection {
    pub(crate) core: Arc<SessionCore>,
    number: u64,
}

impl Session {
    /// Connects a client. Undelivered answers come first.
    pub fn connect(&self) -> Connection {
        let mode = self.core.lock().connection.confirmation_mode;
        self.connect_with(mode)
    }

    /// Connects a client that takes requests for confirmation in another way than the session's mode has it.
    pub fn connect_with(&self, mode: ConfirmationMode) -> Connection {
        let core = self.core.clone();
        let mut data = core.lock();
        data.connection.opened += 1;
        let number = data.connection.opened;
        data.connection.current = Some(number);
        data.connection.confirmation_mode = mode;
        data.seen_ms = core.now_ms();
        core.hand_over(&mut data);
        drop(data);
        // An older connection wakes up and finds itself replaced.
        core.event_queued.notify_waiters();
        Connection { core, number }
    }

    pub fn is_connected(&self) -> bool {
        self.core.is_connected()
    }
}

impl Connection {
    pub fn session(&self) -> Session {
        Session { core: self.core.clone() }
    }

    /// The next event. `None` once another connection has taken over.
    pub async fn next_event(&self) -> Option<ClientEvent> {
        loop {
            let queued = self.core.event_queued.notified();
            {
                let mut data = self.core.lock();
                if data.connection.current != Some(self.number) {
                    return None;
                }
                if let Some(event) = data.events.pop_front() {
                    return Some(event);
                }
            }
            queued.await;
        }
    }

    /// Waits until there is an event. `false` once another connection has taken over.
    pub async fn event_ready(&self) -> bool {
        loop {
            let queued = self.core.event_queued.notified();
            {
                let data = self.core.lock();
                if data.connection.current != Some(self.number) {
                    return false;
                }
                if !data.events.is_empty() {
                    return true;
                }
            }
            queued.await;
        }
    }

    /// The next event, if there is one.
    pub fn try_next_event(&self) -> Option<ClientEvent> {
        let mut data = self.core.lock();
        if data.connection.current != Some(self.number) {
            return None;
        }
        data.events.pop_front()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut data = self.core.lock();
        if data.connection.current != Some(self.number) {
            return;
        }
        data.connection.current = None;
        data.seen_ms = self.core.now_ms();
        data.unsaved.session = true;
        // Answers among the events go back to where undelivered ones wait; that needs the lock, so it is released first.
        let events = std::mem::take(&mut data.events);
        self.core.save_soon(&mut data);
        drop(data);
        let kept: Vec<_> = events.into_iter().filter(|event| event.outlives_connection()).collect();
        let mut data = self.core.lock();
        for event in kept.into_iter().rev() {
            data.events.push_front(event);
        }
    }
}

impl SessionCore {
    /// Ends the present connection: its client finds the session elsewhere.
    pub(crate) fn drop_connection(&self, data: &mut SessionData) {
        data.connection.current = None;
        self.event_queued.notify_waiters();
    }

    /// Queues an event. When the queue is full, the oldest event goes that nothing depends on.
    pub(crate) fn push_event(&self, data: &mut SessionData, event: ClientEvent) {
        data.events.retain(|queued| !queued.is_replaced_by(&event));
        if data.events.len() >= self.shared.policy.max_queued_events
            && let Some(oldest) = data.events.iter().position(ClientEvent::may_be_dropped)
        {
            data.events.remove(oldest);
            tracing::warn!(session = %self.id, "event dropped: the client does not read");
        }
        data.events.push_back(event);
        self.event_queued.notify_waiters();
    }
}
