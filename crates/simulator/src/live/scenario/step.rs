//! What happens within a turn.

use std::time::Duration;

use serde_json::{Map, Value};

/// One thing that happens.
#[derive(Debug, Clone)]
pub(in crate::live) enum Step {
    /// Words, heard and in the transcript, or one of the two.
    Say {
        text: String,
        audio: bool,
        transcript: bool,
    },
    /// A thought, which is not for the person.
    Think(String),
    /// Calls, in one message, and what else is in it.
    Call {
        calls: Vec<ScriptedCall>,
        behaviour: Option<Behaviour>,
        with: Map<String, Value>,
    },
    /// Waits for the answers to every open call.
    Await {
        within: Option<Duration>,
    },
    /// Takes calls back: these, or all that are open.
    Cancel(Option<Vec<String>>),
    /// Is interrupted, without anybody having spoken.
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
    /// Sends exactly this, now or later.
    Send {
        bytes: Vec<u8>,
        after: Duration,
    },
    /// Says that the conversation can be gone on with from here, or not.
    Resumable(bool),

    /// Does something on one connection only, counted from 1.
    Only {
        on: usize,
        step: Box<Step>,
    },

    // What no file says: every turn ends with these.
    /// Everything has been generated.
    Generated,
    /// Waits until everything has been heard.
    Heard,
    /// The turn is complete.
    Complete,
    /// The turn is over, and nobody is told.
    Leave,
    /// The chat model is asked.
    Ask,
}

/// A call as the scenario has it.
#[derive(Debug, Clone)]
pub(in crate::live) struct ScriptedCall {
    pub(in crate::live) id: CallId,
    pub(in crate::live) name: String,
    pub(in crate::live) args: Option<Value>,
}

/// The id of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::live) enum CallId {
    /// A new one.
    Fresh,
    /// This one, perhaps again.
    Given(String),
    /// None.
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
    /// Without a word.
    Abort,
    /// With a close frame.
    Close(u16, String),
}
