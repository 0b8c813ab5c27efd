//! Intents: what a tool asks to have changed in the session. Asking is all it can do.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A change of session state that a handler asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Intent {
    /// Close the voice session once what is being said has been heard.
    EndVoiceSession {
        /// What must have been heard first.
        #[serde(default)]
        after: EndAfter,
    },
    /// Drop model audio from here on, or stop dropping it.
    SuppressAudio {
        /// Whether to drop it.
        value: bool,
    },
    /// Do not show transcripts from here on, or show them again.
    SuppressTranscript {
        /// Whether to hide them.
        value: bool,
    },
    /// Queue a message for the next turn, or clear the queued one.
    SetPendingMessage {
        /// The message; `None` clears.
        message: Option<String>,
    },
}

/// What must have been heard before a voice session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndAfter {
    /// What the model is saying now.
    #[default]
    CurrentTurn,
    /// The farewell.
    FarewellSpoken,
}

/// An intent as it came from a handler: one we know, or something else.
///
/// What we do not know is kept as it was written, because it is refused on the record, not dropped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestedIntent {
    /// One of ours.
    Known(Intent),
    /// Anything else.
    Unknown(Value),
}

impl From<Intent> for RequestedIntent {
    fn from(intent: Intent) -> Self {
        Self::Known(intent)
    }
}
