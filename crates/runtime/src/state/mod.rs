//! The session's state, and the only way to change it.
//!
//! Handlers get a copy and return intents; the controller applies or refuses each. Nothing here does
//! I/O: a transition is data, which the caller records.

mod controller;

use quarterdeck_contracts::{EndAfter, Mode};
use serde::{Deserialize, Serialize};

pub(crate) use controller::{Cause, StateController, Transition};

/// The state of a session, as handlers see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionState {
    pub is_active: bool,
    pub mode: Mode,
    /// The end that waits for what is being said.
    pub pending_end_voice_session: Option<PendingEnd>,
    /// Whether model audio is dropped.
    pub should_suppress_audio: bool,
    /// Whether transcripts are hidden.
    pub should_suppress_transcript: bool,
    /// What is put in front of the next turn as a note to the model.
    pub pending_message: Option<String>,
}

/// The end of a voice session, as it was requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingEnd {
    /// What must have been heard first.
    pub after: EndAfter,
    pub reason: String,
    /// What is said at the end; for a blocked client, the farewell.
    pub closing_message: Option<String>,
    /// What appears in the chat after the call.
    pub text_response: Option<String>,
}

impl PendingEnd {
    /// An end after the present turn, without closing words.
    pub fn with_reason(reason: &str) -> Self {
        Self {
            after: EndAfter::CurrentTurn,
            reason: reason.to_owned(),
            closing_message: None,
            text_response: None,
        }
    }
}

impl PendingEnd {
    /// Whether it ends the call of a client that was blocked, which nothing undoes.
    pub fn is_block(&self) -> bool {
        self.reason == BLOCKED
    }
}

/// The reason of an end by a block.
pub(crate) const BLOCKED: &str = "blocked";

impl SessionState {
    pub fn new(mode: Mode) -> Self {
        Self {
            is_active: true,
            mode,
            pending_end_voice_session: None,
            should_suppress_audio: false,
            should_suppress_transcript: false,
            pending_message: None,
        }
    }
}

#[cfg(test)]
mod tests;
