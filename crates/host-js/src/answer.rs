//! What an ended execution means for its caller.

use quarterdeck_contracts::handler::{CapabilityError, HandlerFault, HostError};
use quarterdeck_contracts::{AnswerError, HandlerAnswer, ToolError};
use quarterdeck_host_wasm::{CapabilityErrorJson, without_confirmation};
use serde_json::Value;

use crate::fault::FaultReporter;
use crate::question;

/// How an execution ended, as the engine reports it.
#[derive(Debug)]
pub(crate) enum Ending {
    /// `execute` returned this JSON.
    Answer(String),
    /// It returned something that JSON cannot express, of this type: `undefined`, a function.
    Nothing(String),
    /// Its answer could not be written as JSON.
    Unwritable(Thrown),
    /// It threw this `error` of an envelope.
    Failure(String),
    /// It let an error of a capability pass: the reason as JSON, and where it had asked.
    Capability { reason: String, stack: String },
    /// It threw something else.
    Crashed(Thrown),
    /// It went over this limit.
    OverLimit(&'static str),
    /// It was stopped at its deadline, while it computed.
    Stopped,
}

/// What a handler threw, as an operator reads it.
#[derive(Debug)]
pub(crate) struct Thrown {
    /// `TypeError: not a function`.
    pub(crate) head: String,
    /// The engine's stack, or nothing.
    pub(crate) stack: String,
}

impl From<&str> for Thrown {
    fn from(head: &str) -> Self {
        Self { head: head.to_owned(), stack: String::new() }
    }
}

impl Thrown {
    fn to_text(&self) -> String {
        format!("{}\n{}", self.head, self.stack).trim_end().to_owned()
    }
}

/// Why there is no answer: the error for the caller, and for the handler's author what is behind it.
type NoAnswer = (HostError, Option<HandlerFault>);

impl Ending {
    /// What became of a call.
    pub(crate) fn of(ending: quarterdeck_host_wasm::Ending) -> Self {
        use quarterdeck_host_wasm::Ending as Raw;
        match ending {
            Raw::Returned(bytes) => Self::parse(&bytes),
            Raw::Crashed(message) => Self::Crashed(message.as_str().into()),
            Raw::OverLimit(what) => Self::OverLimit(what),
            Raw::Idle => {
                Self::Crashed("its promise never settles: nothing is pending that could settle it".into())
            }
            Raw::Stopped => Self::Stopped,
        }
    }

    /// Reads what `end_with` in `exchange.c` wrote: a byte with the length of the kind, the kind, four bytes with the length of
    /// the text, the text, the stack.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        fn parts(bytes: &[u8]) -> Option<[&[u8]; 3]> {
            let (length, rest) = bytes.split_first()?;
            let (kind, rest) = rest.split_at_checked(usize::from(*length))?;
            let (length, rest) = rest.split_first_chunk()?;
            let (text, stack) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            Some([kind, text, stack])
        }
        let Some([kind, text, stack]) = parts(bytes) else {
            return Self::Crashed("its engine ended in an unknown way".into());
        };
        let owned = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let thrown = || Thrown { head: truncated(owned(text)), stack: truncated(owned(stack)) };
        match (kind, text) {
            (b"answer", _) => Self::Answer(owned(text)),
            (b"nothing", _) => Self::Nothing(owned(text)),
            (b"unwritable", _) => Self::Unwritable(thrown()),
            (b"failure", _) => Self::Failure(owned(text)),
            (b"capability", _) => Self::Capability { reason: owned(text), stack: truncated(owned(stack)) },
            (b"limit", b"memory") => Self::OverLimit("memory"),
            (b"limit", b"stack") => Self::OverLimit("stack"),
            (b"limit", b"answer") => Self::OverLimit("answer size"),
            _ => Self::Crashed(thrown()),
        }
    }

    /// The answer, or why there is none. What is wrong with the handler is reported.
    pub(crate) fn into_answer(
        self,
        limit_ms: u64,
        answer_limit: usize,
        faults: &FaultReporter<'_>,
    ) -> Result<HandlerAnswer, HostError> {
        let answer = match self {
            Self::Answer(text) if text.len() > answer_limit => {
                Err((HostError::OverLimit("answer size"), None))
            }
            Self::Answer(text) => parse_answer(&text, faults),
            Self::Nothing(kind) => {
                let fault = faults.misshapen(&AnswerError::NotAnObject, &format!("returned {kind}"));
                Err((AnswerError::NotAnObject.into(), Some(fault)))
            }
            Self::Unwritable(thrown) => {
                let head = format!("the answer cannot be written as JSON: {}", thrown.head);
                let thrown = Thrown { head, ..thrown };
                Err((HostError::Crashed(thrown.to_text()), Some(faults.unwritable(&thrown))))
            }
            Self::Failure(text) => parse_failure(&text).map(HandlerAnswer::failure).map_err(|error| {
                let fault = error.to_fault();
                (error, fault)
            }),
            Self::Capability { reason, stack } => {
                parse_reason(&reason).map_err(|error| (error, None)).map(|reason| {
                    faults.report(faults.capability(&reason, &stack));
                    HandlerAnswer::failure(reason.into())
                })
            }
            Self::Crashed(thrown) => {
                Err((HostError::Crashed(thrown.to_text()), Some(faults.thrown(&thrown))))
            }
            Self::OverLimit(what) => Err((HostError::OverLimit(what), None)),
            Self::Stopped => Err((HostError::TimedOut { limit_ms, computing: true }, None)),
        };
        let answer = answer.map_err(|(error, fault)| {
            fault.into_iter().for_each(|fault| faults.report(fault));
            error
        })?;
        without_confirmation(answer)
    }
}

/// The ending of a guest that could not write one itself.
pub(crate) fn crash(message: &str) -> Vec<u8> {
    const KIND: &[u8] = b"crashed";
    let length = u32::try_from(message.len()).unwrap_or(0).to_le_bytes();
    [&[KIND.len() as u8], KIND, &length, message.as_bytes()].concat()
}

fn parse_answer(text: &str, faults: &FaultReporter<'_>) -> Result<HandlerAnswer, NoAnswer> {
    let value = read(text).map_err(|error| (error, None))?;
    HandlerAnswer::parse(value).map_err(|error| {
        // Read again: a good answer is not copied for the sake of a bad one.
        let returned = read(text).as_ref().map(shape_of).unwrap_or_default();
        let fault = faults.misshapen(&error, &returned);
        (error.into(), Some(fault))
    })
}

fn parse_failure(text: &str) -> Result<ToolError, HostError> {
    Ok(serde_json::from_value(read(text)?).map_err(AnswerError::BadError)?)
}

fn parse_reason(text: &str) -> Result<CapabilityError, HostError> {
    let reason: CapabilityErrorJson = serde_json::from_value(read(text)?).map_err(AnswerError::BadError)?;
    Ok(reason.into())
}

/// What a value is, without what is in it: that may be a user's.
fn shape_of(value: &Value) -> String {
    const MAX_KEYS: usize = 8;
    match value {
        Value::Null => "returned null".into(),
        Value::Bool(_) => "returned a boolean".into(),
        Value::Number(_) => "returned a number".into(),
        Value::String(_) => "returned a text".into(),
        Value::Array(_) => "returned a list".into(),
        Value::Object(fields) if fields.is_empty() => "returned an object without fields".into(),
        Value::Object(fields) => {
            let mut keys: Vec<_> = fields.keys().take(MAX_KEYS).map(|key| format!("`{key}`")).collect();
            if fields.len() > MAX_KEYS {
                keys.push("…".into());
            }
            format!("returned an object with {}", keys.join(", "))
        }
    }
}

/// What an operator reads of a crash. A handler may throw megabytes.
fn truncated(mut text: String) -> String {
    const MAX_CRASH_BYTES: usize = 8 << 10;
    if text.len() > MAX_CRASH_BYTES {
        text.truncate(text.floor_char_boundary(MAX_CRASH_BYTES));
        text.push('…');
    }
    text
}

/// Reads JSON that the engine wrote.
fn read(text: &str) -> Result<Value, HostError> {
    question::read(text).ok_or_else(|| {
        let error = serde_json::from_str::<Value>(text).err().map(|error| error.to_string());
        HostError::Crashed(format!("the answer cannot be read as JSON: {}", error.unwrap_or_default()))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ending_is_read_as_it_is_written() {
        let Ending::Crashed(thrown) = Ending::parse(&crash("TypeError: no")) else { panic!("it crashed") };
        assert_eq!((thrown.head.as_str(), thrown.stack.as_str()), ("TypeError: no", ""));
    }

    proptest! {
        /// A guest whose memory was overwritten may end with anything.
        #[test]
        fn any_bytes_are_an_ending(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in "(answer|limit|failure|x)?") {
            let whole = [&[kind.len() as u8], kind.as_bytes(), &bytes].concat();
            Ending::parse(&bytes);
            Ending::parse(&whole);
        }
    }
}
