//! What an ended execution means for its caller.

use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode, HostError};
use quarterdeck_contracts::{AnswerError, HandlerAnswer, Outcome, ToolError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How an execution ended, as the engine reports it.
#[derive(Debug)]
pub(crate) enum Ending {
    /// `execute` returned this JSON.
    Answer(String),
    /// It returned something that JSON cannot express: `undefined`, a function.
    Nothing,
    /// It threw this `error` of an envelope.
    Failure(String),
    /// It let an error of a capability pass.
    Capability(String),
    /// It threw something else.
    Crashed(String),
    /// It went over this limit.
    OverLimit(&'static str),
    /// It was stopped at its deadline, while it computed.
    Stopped,
    /// It never began, because its handler went out of service.
    Refused(HostError),
}

impl Ending {
    /// Reads what `prelude.js` says at the end.
    pub(crate) fn parse(kind: &str, text: String) -> Self {
        match (kind, text.as_str()) {
            ("answer", _) => Self::Answer(text),
            ("nothing", _) => Self::Nothing,
            ("failure", _) => Self::Failure(text),
            ("capability", _) => Self::Capability(text),
            ("limit", "memory") => Self::OverLimit("memory"),
            ("limit", "stack") => Self::OverLimit("stack"),
            ("limit", "answer") => Self::OverLimit("answer size"),
            _ => Self::Crashed(truncated(text)),
        }
    }

    /// The answer, or why there is none.
    pub(crate) fn into_answer(self, limit_ms: u64, answer_limit: usize) -> Result<HandlerAnswer, HostError> {
        let answer = match self {
            Self::Answer(text) if text.len() > answer_limit => {
                return Err(HostError::OverLimit("answer size"));
            }
            Self::Answer(text) => HandlerAnswer::parse(read(&text)?)?,
            Self::Nothing => return Err(AnswerError::NotAnObject.into()),
            Self::Failure(text) => {
                let error: ToolError = serde_json::from_value(read(&text)?).map_err(AnswerError::BadError)?;
                HandlerAnswer::failure(error)
            }
            Self::Capability(text) => {
                let reason: CapabilityErrorJson =
                    serde_json::from_value(read(&text)?).map_err(AnswerError::BadError)?;
                HandlerAnswer::failure(CapabilityError::from(reason).into())
            }
            Self::Crashed(text) => return Err(HostError::Crashed(text)),
            Self::OverLimit(what) => return Err(HostError::OverLimit(what)),
            Self::Stopped => return Err(HostError::TimedOut { limit_ms, computing: true }),
            Self::Refused(error) => return Err(error),
        };
        match &answer.outcome {
            Outcome::Failure(error) if error.kind.is_confirmation() => Err(HostError::Crashed(format!(
                "it raised {}, which is not a handler's to raise",
                error.kind
            ))),
            _ => Ok(answer),
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
