//! What an ended execution means for its caller.

use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode, HandlerFault, HostError};
use quarterdeck_contracts::{AnswerError, HandlerAnswer, Outcome, ToolError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fault::FaultReporter;

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
    /// It never began, because its handler went out of service.
    Refused(HostError),
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
    /// Reads what `prelude.js` says at the end.
    pub(crate) fn parse(kind: &str, text: String, stack: String) -> Self {
        match (kind, text.as_str()) {
            ("answer", _) => Self::Answer(text),
            ("nothing", _) => Self::Nothing(text),
            ("unwritable", _) => Self::Unwritable(Thrown { head: truncated(text), stack: truncated(stack) }),
            ("failure", _) => Self::Failure(text),
            ("capability", _) => Self::Capability { reason: text, stack: truncated(stack) },
            ("limit", "memory") => Self::OverLimit("memory"),
            ("limit", "stack") => Self::OverLimit("stack"),
            ("limit", "answer") => Self::OverLimit("answer size"),
            _ => Self::Crashed(Thrown { head: truncated(text), stack: truncated(stack) }),
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
            Self::Refused(error) => Err((error, None)),
        };
        let answer = answer.map_err(|(error, fault)| {
            fault.into_iter().for_each(|fault| faults.report(fault));
            error
        })?;
        match &answer.outcome {
            Outcome::Failure(error) if error.kind.is_confirmation() => Err(HostError::Crashed(format!(
                "it raised {}, which is not a handler's to raise",
                error.kind
            ))),
            _ => Ok(answer),
        }
    }
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

/// A capability's error as it crosses into JavaScript and back.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CapabilityErrorJson {
    code: CapabilityErrorCode,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after: Option<f64>,
}

impl From<CapabilityError> for CapabilityErrorJson {
    fn from(error: CapabilityError) -> Self {
        Self { code: error.code, message: error.message, retry_after: error.retry_after_seconds }
    }
}

impl From<CapabilityErrorJson> for CapabilityError {
    fn from(reason: CapabilityErrorJson) -> Self {
        Self { retry_after_seconds: reason.retry_after, ..Self::new(reason.code, reason.message) }
    }
}

/// Reads JSON that the engine wrote. A JavaScript string may hold half of a character, which is escaped there and
/// has no place in ours: it becomes U+FFFD rather than the end of an otherwise good answer.
pub(crate) fn read(text: &str) -> Result<Value, HostError> {
    serde_json::from_str(text)
        .or_else(|_| serde_json::from_str(&without_lone_surrogates(text)))
        .map_err(|error| HostError::Crashed(format!("the answer cannot be read as JSON: {error}")))
}

fn without_lone_surrogates(text: &str) -> String {
    let unit = |at: usize| -> Option<u16> {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut clean = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(escape) = text[at..].find('\\').map(|offset| at + offset) {
        clean.push_str(&text[at..escape]);
        let low_follows = matches!(unit(escape + 6), Some(0xDC00..=0xDFFF));
        let (copied, length) = match unit(escape) {
            Some(0xD800..=0xDBFF) if low_follows => (&text[escape..escape + 12], 12),
            Some(0xD800..=0xDFFF) => ("\\ufffd", 6),
            _ => (&text[escape..escape + 2], 2),
        };
        clean.push_str(copied);
        at = escape + length;
    }
    clean.push_str(&text[at..]);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_character_does_not_cost_the_answer() {
        let text = r#"{"a":"\ud83d!","b":"\\ud83d","c":"\ud83d\ude00","d":"\udc00\ud800","e":"\u0000é"}"#;
        let value = read(text).unwrap();
        assert_eq!(value["a"], "\u{fffd}!");
        assert_eq!(value["b"], "\\ud83d");
        assert_eq!(value["c"], "😀");
        assert_eq!(value["d"], "\u{fffd}\u{fffd}");
        assert_eq!(value["e"], "\0é");
    }
}
