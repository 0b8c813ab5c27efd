//! Reads the bytes of a stream into a reply, without a network.

use std::collections::VecDeque;

use quarterdeck_contracts::{
    CallArguments, ChatErrorKind, ChatEvent, JsonError, MAX_CALLS_PER_MESSAGE, ModelCall, ModelReply,
};

use crate::Fault;
use crate::sse::{Decoder, Event, TooLarge};

/// Parts of one reply, of every kind.
pub(crate) const MAX_PARTS: usize = 4 * MAX_CALLS_PER_MESSAGE;
/// The bytes of one stream, whatever is in them: what a reply can grow to in memory.
const MAX_REPLY_BYTES: usize = 64 << 20;
/// Name of a tool in a call, and its id.
const MAX_NAME_BYTES: usize = 256;
const MAX_ID_BYTES: usize = 1_024;
/// How much of a body without events is kept, to see what it was.
const MAX_UNPARSED_BYTES: usize = 16 << 10;

/// Collects the events of one stream into a reply: one implementation for each provider. It does no I/O and has no clock,
/// so that any stream can be replayed.
pub trait Accumulator: Send {
    /// Takes one event, and appends what can be emitted to `out`.
    fn take(&mut self, event: Event<'_>, out: &mut VecDeque<ChatEvent>) -> Result<(), Fault>;

    fn progress(&self) -> Progress;

    /// The whole reply, or why it is none. Called once, when the stream has ended or nothing more is expected.
    fn finish(self) -> Result<ModelReply, Fault>;
}

/// How far a reply is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// A stream that ends here was cut.
    Incomplete,
    /// There is a finish reason. The usage may follow, and is not required.
    Finished,
    /// Nothing follows.
    Ended,
}

/// Reads the bytes of one stream into an accumulator.
#[derive(Debug)]
pub struct Reader<A> {
    decoder: Decoder,
    accumulator: A,
    received_bytes: usize,
    /// The beginning of a body that has had no event so far.
    unparsed: Vec<u8>,
}

impl<A: Accumulator> Reader<A> {
    pub fn new(accumulator: A, max_event_bytes: usize) -> Self {
        Self { decoder: Decoder::new(max_event_bytes), accumulator, received_bytes: 0, unparsed: Vec::new() }
    }

    /// Takes more bytes, and appends what can be emitted to `out`.
    pub fn feed(&mut self, bytes: &[u8], out: &mut VecDeque<ChatEvent>) -> Result<Progress, Fault> {
        self.received_bytes += bytes.len();
        if self.received_bytes > MAX_REPLY_BYTES {
            return Err(Fault::garbled(format!("a reply of more than {MAX_REPLY_BYTES} bytes")));
        }
        let fed = pass(&mut self.accumulator, out, |each| self.decoder.feed(bytes, each));
        if self.decoder.events() == 0 {
            let free = MAX_UNPARSED_BYTES - self.unparsed.len();
            self.unparsed.extend_from_slice(&bytes[..bytes.len().min(free)]);
        }
        fed.map(|()| self.progress())
    }

    /// Says that the body has ended. A last event without its empty line counts when it is whole; half of one does not
    /// make the answer garbled but cut, and that is for the accumulator to say.
    pub fn end(&mut self, out: &mut VecDeque<ChatEvent>) -> Result<(), Fault> {
        match pass(&mut self.accumulator, out, |each| self.decoder.end(each)) {
            Err(fault) if fault.kind != ChatErrorKind::Garbled => Err(fault),
            _ => Ok(()),
        }
    }

    pub fn progress(&self) -> Progress {
        self.accumulator.progress()
    }

    pub fn finish(self) -> Result<ModelReply, Fault> {
        if self.decoder.events() > 0 || self.unparsed.is_empty() {
            return self.accumulator.finish();
        }
        let error = Fault::from_body(&self.unparsed);
        Err(error.unwrap_or_else(|| Fault::garbled("something came that is no event stream")))
    }
}

/// Passes events to the accumulator, up to an error or the end.
fn pass<A: Accumulator>(
    accumulator: &mut A,
    out: &mut VecDeque<ChatEvent>,
    decode: impl FnOnce(&mut dyn FnMut(Event<'_>)) -> Result<(), TooLarge>,
) -> Result<(), Fault> {
    let mut outcome = Ok(());
    let decoded = decode(&mut |event| {
        if outcome.is_ok() && accumulator.progress() != Progress::Ended {
            outcome = accumulator.take(event, out);
        }
    });
    match (outcome, decoded) {
        (Ok(()), Err(error)) if accumulator.progress() != Progress::Ended => {
            Err(Fault::garbled(error.to_string()))
        }
        (outcome, _) => outcome,
    }
}

/// A call within bounds. No tool has so long a name, so what is cut off is not missed; an id is all or nothing.
pub(crate) fn model_call(id: String, mut name: String, arguments: CallArguments) -> ModelCall {
    name.truncate(name.floor_char_boundary(MAX_NAME_BYTES));
    let id = (!id.is_empty() && id.len() <= MAX_ID_BYTES).then_some(id);
    ModelCall { id, name, arguments }
}

pub(crate) fn too_many_calls() -> Fault {
    Fault::garbled(format!("a reply with more than {MAX_CALLS_PER_MESSAGE} calls"))
}

pub(crate) fn too_many_parts() -> Fault {
    Fault::garbled(format!("a reply with more than {MAX_PARTS} parts"))
}

/// An event whose data is no JSON. Its content stays out of the message: it may be users' words.
pub(crate) fn not_json(fault: &JsonError) -> Fault {
    let what = if fault.ends_early() { "ends too early" } else { "is malformed" };
    Fault::garbled(format!("an event whose JSON {what} (column {})", fault.column()))
}
