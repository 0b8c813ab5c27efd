//! What outlives a connection.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quarterdeck_contracts::ChatModel;
use tokio::time::Instant;

use super::conversation::Conversation;
use super::report::Report;
use super::scenario::Scenario;
use super::sound::Voice;

/// How many handles are remembered, over all conversations.
const MOST_HANDLES: usize = 1_024;
/// How long a handle is good for.
const HANDLE_LIFE: Duration = Duration::from_secs(2 * 60 * 60);

/// What all connections of a simulator share.
pub(super) struct Desk {
    pub(super) mind: Mind,
    pub(super) voice: Option<Arc<dyn Voice>>,
    books: Mutex<Books>,
}

/// Who decides what is said.
#[derive(Clone)]
pub(super) enum Mind {
    Plays(Arc<Scenario>),
    Answers(Arc<dyn ChatModel>),
}

/// What is written down.
#[derive(Default)]
pub(super) struct Books {
    pub(super) report: Report,
    /// How many connections are open.
    pub(super) open: usize,
    /// Whether the last turn of the scenario has been completed.
    pub(super) is_played: bool,
    calls: usize,
    handles: VecDeque<(String, Instant, Conversation)>,
    handles_made: usize,
    /// So that a handle of an earlier process is not taken for one of ours.
    nonce: u32,
}

impl Desk {
    pub(super) fn new(mind: Mind) -> Self {
        let mut nonce = [0; 4];
        // Without random numbers handles of two processes may look alike, and that is all.
        let _ = getrandom::fill(&mut nonce);
        let books = Books { nonce: u32::from_ne_bytes(nonce), ..Books::default() };
        Self { mind, voice: None, books: Mutex::new(books) }
    }

    pub(super) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn scenario(&self) -> Option<&Arc<Scenario>> {
        match &self.mind {
            Mind::Plays(scenario) => Some(scenario),
            Mind::Answers(_) => None,
        }
    }
}

impl Books {
    /// An id for a call of a scenario: the same whenever it is played.
    pub(super) fn call_id(&mut self) -> String {
        self.calls += 1;
        format!("function-call-{}", self.calls)
    }

    /// An id for a call that was thought of. The session may outlive this process, and another call of the same id.
    pub(super) fn fresh_call_id(&mut self) -> String {
        self.calls += 1;
        format!("function-call-{:08x}-{}", self.nonce, self.calls)
    }

    /// A handle for a conversation as it is now.
    pub(super) fn handle(&mut self, conversation: Conversation, now: Instant) -> String {
        self.handles_made += 1;
        let handle = format!("simulated-{:08x}-{}", self.nonce, self.handles_made);
        if self.handles.len() >= MOST_HANDLES {
            self.handles.pop_front();
        }
        self.handles.push_back((handle.clone(), now, conversation));
        handle
    }

    /// The conversation as it was when the handle was given.
    pub(super) fn find(&self, handle: &str, now: Instant) -> Option<Conversation> {
        let (_, made, conversation) = self.handles.iter().rev().find(|(known, ..)| known == handle)?;
        (now.duration_since(*made) < HANDLE_LIFE).then(|| conversation.clone())
    }
}
