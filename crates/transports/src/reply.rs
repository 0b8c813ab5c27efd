//! What the shared path asks of a provider's reader of streams.

use std::collections::VecDeque;

use quarterdeck_contracts::{ChatEvent, ModelReply};

use crate::Fault;
use crate::sse::Event;

/// Most calls that one reply may make. A model that makes more is caught in a loop.
pub(crate) const MOST_CALLS: usize = 128;

/// Makes a reply of the events of one stream. It does no I/O and has no clock, so that any stream can be replayed.
pub trait Accumulator: Send {
    /// Takes one event, and puts what can be handed on at the end of `said`.
    fn take(&mut self, event: Event<'_>, said: &mut VecDeque<ChatEvent>) -> Result<(), Fault>;

    /// How far the reply is.
    fn progress(&self) -> Progress;

    /// The whole reply, or why it is none. Called once, when the stream has ended or nothing more is expected.
    fn finish(self) -> Result<ModelReply, Fault>;
}

/// How far a reply is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// In the middle. A stream that ends here was cut.
    Under,
    /// It has said why it ends. Figures may follow, and their absence hurts nobody.
    Enough,
    /// Nothing follows.
    Over,
}

/// One more call than a reply may make.
pub(crate) fn too_many_calls() -> Fault {
    Fault::garbled(format!("a reply with more than {MOST_CALLS} calls"))
}

/// An event whose data is no JSON. What it said stays out of the message: it may be people's words.
pub(crate) fn not_json(error: &serde_json::Error) -> Fault {
    let what = if error.is_eof() { "ends too early" } else { "is malformed" };
    Fault::garbled(format!("an event whose JSON {what} (column {})", error.column()))
}
