//! What all connections of a simulator share.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quarterdeck_contracts::ChatModel;
use tokio::time::Instant;

use super::conversation::Conversation;
use super::report::Report;
use super::scenario::Scenario;
use super::sound::{Substitute, Voice};

/// Over all conversations.
const MAX_HANDLES: usize = 1_024;
const HANDLE_LIFETIME: Duration = Duration::from_secs(2 * 60 * 60);

pub(super) struct Simulation {
    pub(super) source: ReplySource,
    pub(super) voice: Option<Arc<dyn Voice>>,
    pub(super) substitute: Substitute,
    state: Mutex<SharedState>,
}

/// What decides the replies.
#[derive(Clone)]
pub(super) enum ReplySource {
    Scenario(Arc<Scenario>),
    ChatModel(Arc<dyn ChatModel>),
}

#[derive(Default)]
pub(super) struct SharedState {
    pub(super) report: Report,
    pub(super) open_connections: usize,
    /// Whether the last turn of the scenario is complete.
    pub(super) is_played: bool,
    calls: usize,
    handles: VecDeque<(String, Instant, Conversation)>,
    handles_issued: usize,
    /// Tells handles of this process from those of an earlier one.
    nonce: u32,
}

impl Simulation {
    pub(super) fn new(source: ReplySource) -> Self {
        let mut nonce = [0; 4];
        // Without random numbers, handles of two processes may be equal, which is harmless.
        let _ = getrandom::fill(&mut nonce);
        let state = SharedState { nonce: u32::from_ne_bytes(nonce), ..SharedState::default() };
        Self { source, voice: None, substitute: Substitute::default(), state: Mutex::new(state) }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, SharedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn scenario(&self) -> Option<&Arc<Scenario>> {
        match &self.source {
            ReplySource::Scenario(scenario) => Some(scenario),
            ReplySource::ChatModel(_) => None,
        }
    }
}

impl SharedState {
    /// An id for a call of a scenario: the same whenever it is played.
    pub(super) fn call_id(&mut self) -> String {
        self.calls += 1;
        format!("function-call-{}", self.calls)
    }

    /// An id for a call of the chat model, unique beyond this process: the session may outlive it.
    pub(super) fn fresh_call_id(&mut self) -> String {
        self.calls += 1;
        format!("function-call-{:08x}-{}", self.nonce, self.calls)
    }

    /// A handle for a conversation as it is now.
    pub(super) fn issue_handle(&mut self, conversation: Conversation, now: Instant) -> String {
        self.handles_issued += 1;
        let handle = format!("simulated-{:08x}-{}", self.nonce, self.handles_issued);
        if self.handles.len() >= MAX_HANDLES {
            self.handles.pop_front();
        }
        self.handles.push_back((handle.clone(), now, conversation));
        handle
    }

    /// The conversation as it was when the handle was issued.
    pub(super) fn find(&self, handle: &str, now: Instant) -> Option<Conversation> {
        let (_, made, conversation) = self.handles.iter().rev().find(|(known, ..)| known == handle)?;
        (now.duration_since(*made) < HANDLE_LIFETIME).then(|| conversation.clone())
    }
}
