//! What goes to the client beside the answers, and the connection it goes through.

use std::sync::Arc;

use quarterdeck_contracts::ConfirmationRequest;
use serde_json::Value;

use super::answer::Answer;
use super::{Batch, ConfirmationMode, Session, SessionCore, SessionData};
use crate::call::Call;
use crate::state::PendingEnd;

/// Something the client should know.
#[derive(Debug)]
pub enum ClientEvent {
    /// A tool's message.
    Message(Value),
    /// A note while a slow tool runs.
    Progress {
        /// Which call.
        call_id: Arc<str>,
        /// What it says.
        text: String,
    },
    /// A question to the person, with the token that answers it. Never for a model.
    Confirmation {
        /// The call that needs it.
        call_id: Arc<str>,
        /// What is asked.
        request: ConfirmationRequest,
    },
    /// The outcome of a call that could not be told where it was asked.
    Answer {
        /// Why it comes this way.
        why: DeliveryReason,
        /// The answer.
        answer: Answer,
    },
    /// The session is over.
    End(PendingEnd),
}

/// Why an answer comes as an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryReason {
    /// The connection that asked is gone.
    Late,
    /// A person approved or refused it after the call had been answered.
    Confirmed,
    /// It was cancelled, but had begun to write and has finished.
    Abandoned,
}

/// A client's way to its session. A new one takes over from an older one; dropping it leaves the session to be resumed.
pub struct Connection {
    core: Arc<SessionCore>,
    number: u64,
}

impl Session {
    /// Connects a client. What nobody has received so far comes first.
    pub fn connect(&self) -> Connection {
        let mode = self.core.lock().confirmation_mode;
        self.connect_with(mode)
    }

    /// Connects a client with a way of asking that is not the mode's own.
    pub fn connect_with(&self, mode: ConfirmationMode) -> Connection {
        let core = self.core.clone();
        let mut data = core.lock();
        data.connections += 1;
        let number = data.connections;
        data.connection = Some(number);
        data.confirmation_mode = mode;
        data.seen_ms = core.now_ms();
        core.hand_over(&mut data);
        drop(data);
        // An older connection wakes up and finds itself replaced.
        core.event_queued.notify_waiters();
        Connection { core, number }
    }

    /// Whether a client is connected.
    pub fn is_connected(&self) -> bool {
        self.core.lock().connection.is_some()
    }
}

impl Connection {
    /// The session.
    pub fn session(&self) -> Session {
        Session { core: self.core.clone() }
    }

    /// Hands over the calls of one message. They are admitted as a whole, in order, before this returns; if judging
    /// their arguments takes long, as soon as that is done.
    pub fn submit(&self, calls: Vec<Call>) -> Batch {
        self.core.submit(calls)
    }

    /// The next event. Nothing comes any more once another connection has taken over.
    pub async fn next_event(&self) -> Option<ClientEvent> {
        loop {
            let queued = self.core.event_queued.notified();
            {
                let mut data = self.core.lock();
                if data.connection != Some(self.number) {
                    return None;
                }
                if let Some(event) = data.events.pop_front() {
                    return Some(event);
                }
            }
            queued.await;
        }
    }

    /// The next event, if there is one.
    pub fn try_next_event(&self) -> Option<ClientEvent> {
        let mut data = self.core.lock();
        if data.connection != Some(self.number) {
            return None;
        }
        data.events.pop_front()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut data = self.core.lock();
        if data.connection != Some(self.number) {
            return;
        }
        data.connection = None;
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

impl ClientEvent {
    /// Whether the next connection must still hear of it.
    fn outlives_connection(&self) -> bool {
        // Late answers go back to where undelivered ones wait; an abandoned one has no other place than this.
        matches!(
            self,
            Self::Confirmation { .. } | Self::End(_) | Self::Answer { why: DeliveryReason::Abandoned, .. }
        )
    }

    fn may_be_dropped(&self) -> bool {
        matches!(self, Self::Progress { .. } | Self::Message(_))
    }
}

impl SessionCore {
    /// Queues an event. When too many wait, the oldest that nobody depends on goes.
    pub(super) fn push_event(&self, data: &mut SessionData, event: ClientEvent) {
        if data.events.len() >= self.shared.policy.max_queued_events
            && let Some(oldest) = data.events.iter().position(ClientEvent::may_be_dropped)
        {
            data.events.remove(oldest);
            tracing::warn!(session = %self.id, "an event was dropped: the client does not read");
        }
        data.events.push_back(event);
        self.event_queued.notify_waiters();
    }
}
