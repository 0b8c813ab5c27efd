//! The steps of a turn, as a scenario has them.

use std::time::Duration;

use serde_json::{Map, Value};

#[derive(Debug, Clone)]
pub(in crate::live) enum Step {
    /// Speech with its transcript, or one of the two.
    Say {
        text: String,
        audio: bool,
        transcript: bool,
    },
    /// A thought, which is not spoken.
    Think(String),
    /// Calls, in one message, with further fields.
    Call {
        calls: Vec<ScriptedCall>,
        behaviour: Option<Behaviour>,
        with: Map<String, Value>,
    },
    /// Waits for the answers to every open call.
    Await {
        within: Option<Duration>,
    },
    /// Cancels these calls, or all that are open.
    Cancel(Option<Vec<String>>),
    /// Interrupts the turn without speech.
    Interrupt,
    /// Waits to be interrupted.
    ExpectInterruption(Duration),
    /// Announces that the connection will end.
    GoAway {
        left: Option<Duration>,
        closes_after: Duration,
        ending: Ending,
    },
    /// Ends the connection.
    Drop(Ending),
    Wait(Duration),
    /// Sends these bytes, now or later.
    Send {
        bytes: Vec<u8>,
        after: Duration,
    },
    /// Sends a resumption handle, or that there is none.
    Resumable(bool),

    /// A step on one connection only, counted from 1.
    Only {
        on: usize,
        step: Box<Step>,
    },

    // Not in files: every turn ends with these.
    GenerationComplete,
    /// Waits until everything that was sent has been played.
    WaitForPlayback,
    Complete,
    /// Ends the turn without a frame.
    EndSilently,
    /// Asks the chat model.
    Ask,
}

impl Step {
    /// Whether it only ends the turn.
    pub(in crate::live) fn is_ending(&self) -> bool {
        matches!(self, Self::GenerationComplete | Self::WaitForPlayback | Self::Complete | Self::EndSilently)
    }
}

#[derive(Debug, Clone)]
pub(in crate::live) struct ScriptedCall {
    pub(in crate::live) id: CallId,
    pub(in crate::live) name: String,
    pub(in crate::live) args: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::live) enum CallId {
    Fresh,
    /// Perhaps one that was used before.
    Given(String),
    Missing,
}

/// Whether the model waits for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::live) enum Behaviour {
    Blocking,
    NonBlocking,
}

/// How a connection ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::live) enum Ending {
    /// Without a close frame.
    Abort,
    Close(u16, String),
}
