//! What went wrong, as far as a provider's own words tell.

use std::time::Duration;

use quarterdeck_contracts::{ChatError, ChatErrorKind};
use serde_json::Value;

use crate::retry::parse_retry_delay;

/// How much of a provider's message is kept, in characters.
const MOST_DETAIL: usize = 500;

/// Why there is no reply, before it is known whether it is worth another try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What kind of failure it is.
    pub kind: ChatErrorKind,
    /// What the provider said, or what happened.
    pub detail: String,
    /// How long the provider wants to be left alone.
    pub retry_after: Option<Duration>,
    /// Whether the same request may well succeed later.
    pub again: bool,
    /// Whether a quota is used up, which asking again does not change, whatever a header says.
    pub(crate) spent: bool,
}

impl Fault {
    pub(crate) fn new(kind: ChatErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), retry_after: None, again: false, spent: false }
    }

    /// One that another try may get around.
    pub(crate) fn passing(kind: ChatErrorKind, detail: impl Into<String>) -> Self {
        Self { again: true, ..Self::new(kind, detail) }
    }

    /// What came is not what the protocol says.
    pub(crate) fn garbled(detail: impl Into<String>) -> Self {
        Self::new(ChatErrorKind::Garbled, detail)
    }

    /// The answer stopped in the middle.
    pub(crate) fn cut(detail: impl Into<String>) -> Self {
        Self::passing(ChatErrorKind::Cut, detail)
    }

    /// An error that a provider reports in the stream, when the status has long been 200.
    pub(crate) fn mid_stream(said: &Value) -> Self {
        let said = Said::read(said).unwrap_or_default();
        let status = said.status;
        said.fault(status, "the provider broke off")
    }

    /// An answer with a status that says that it is none.
    pub(crate) fn answered(status: u16, reason: &str, body: &[u8], is_text: bool) -> Self {
        let opening =
            if reason.is_empty() { format!("HTTP {status}") } else { format!("HTTP {status} {reason}") };
        let said = serde_json::from_slice(body).ok().and_then(|value: Value| Said::read(&value));
        let said = said.unwrap_or_else(|| Said {
            message: if is_text { String::from_utf8_lossy(body).into_owned() } else { String::new() },
            ..Said::default()
        });
        said.fault(Some(status), &opening)
    }

    /// An error object where a stream was expected, if that is what these bytes are.
    pub(crate) fn instead_of_a_stream(body: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(body).ok()?;
        Said::read(&value).map(|said| {
            let status = said.status;
            said.fault(status, "an error instead of a stream")
        })
    }

    pub(crate) fn into_error(self, model: &str) -> ChatError {
        ChatError {
            kind: self.kind,
            model: model.to_owned(),
            detail: self.detail,
            retry_after: self.retry_after,
        }
    }
}

/// The error object of a provider. All three have `error` with a `message`, and words for machines beside it.
#[derive(Debug, Default)]
struct Said {
    message: String,
    /// `type`, `code`, `status` and reasons, whichever there are.
    words: Vec<String>,
    /// A status given as a number in the error itself.
    status: Option<u16>,
    retry_after: Option<Duration>,
}

impl Said {
    fn read(value: &Value) -> Option<Self> {
        // Gemini wraps an error in a list when it thinks of the stream as one.
        let value = value.get(0).unwrap_or(value);
        let error = value.get("error").filter(|error| !error.is_null())?;
        let mut said = Self::default();
        if let Some(message) = error.as_str() {
            said.message = message.to_owned();
            return Some(said);
        }
        if let Some(message) = error.get("message").and_then(Value::as_str) {
            said.message = message.to_owned();
        }
        let members = ["type", "code", "status"].iter().filter_map(|member| error.get(*member));
        for member in members {
            match member {
                Value::String(word) => said.words.push(word.clone()),
                Value::Number(number) => said.status = number.as_u64().and_then(|n| u16::try_from(n).ok()),
                _ => {}
            }
        }
        for detail in error.get("details").and_then(Value::as_array).into_iter().flatten() {
            if let Some(reason) = detail.get("reason").and_then(Value::as_str) {
                said.words.push(reason.to_owned());
            }
            if let Some(delay) = detail.get("retryDelay").and_then(Value::as_str) {
                said.retry_after = parse_retry_delay(delay);
            }
        }
        Some(said)
    }

    fn fault(self, status: Option<u16>, opening: &str) -> Fault {
        let kind = self.kind(status);
        let again = match status {
            Some(status) => is_passing(status),
            None => matches!(kind, ChatErrorKind::Overloaded | ChatErrorKind::RateLimited),
        };
        let detail = match trimmed(&self.message) {
            message if message.is_empty() => opening.to_owned(),
            message => format!("{opening}: {message}"),
        };
        let spent = self.is_spent();
        Fault { kind, detail, retry_after: self.retry_after, again: again && !spent, spent }
    }

    fn kind(&self, status: Option<u16>) -> ChatErrorKind {
        match status {
            Some(401 | 403) => ChatErrorKind::Unauthorised,
            Some(402 | 429) => ChatErrorKind::RateLimited,
            Some(413) => ChatErrorKind::TooLong,
            Some(408 | 409 | 500..) => ChatErrorKind::Overloaded,
            Some(300..=499) => self.kind_in_words().unwrap_or(ChatErrorKind::Rejected),
            _ => self.kind_in_words().unwrap_or(ChatErrorKind::Overloaded),
        }
    }

    fn kind_in_words(&self) -> Option<ChatErrorKind> {
        let by_word = |word: &String| match word.as_str() {
            "insufficient_quota"
            | "billing_error"
            | "rate_limit_exceeded"
            | "rate_limit_error"
            | "requests"
            | "tokens"
            | "RESOURCE_EXHAUSTED" => Some(ChatErrorKind::RateLimited),
            "authentication_error"
            | "permission_error"
            | "invalid_api_key"
            | "UNAUTHENTICATED"
            | "PERMISSION_DENIED"
            | "API_KEY_INVALID" => Some(ChatErrorKind::Unauthorised),
            "overloaded_error"
            | "api_error"
            | "timeout_error"
            | "server_error"
            | "internal_server_error"
            | "UNAVAILABLE"
            | "INTERNAL"
            | "DEADLINE_EXCEEDED"
            | "ABORTED"
            | "UNKNOWN" => Some(ChatErrorKind::Overloaded),
            "context_length_exceeded" | "request_too_large" | "exceed_context_size_error" => {
                Some(ChatErrorKind::TooLong)
            }
            "content_filter" | "content_policy_violation" => Some(ChatErrorKind::Refused),
            _ => None,
        };
        if let Some(kind) = self.words.iter().find_map(by_word) {
            return Some(kind);
        }
        // Anthropic, Gemini and most compatible servers say only in prose that the conversation is too long.
        let message = self.message.to_ascii_lowercase();
        let too_long = ["prompt is too long", "context length", "context window", "context size"];
        let is_too_long = too_long.iter().any(|phrase| message.contains(phrase))
            || message.contains("token count") && message.contains("exceeds");
        let rejected = ["invalid_request_error", "INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION"];
        if is_too_long {
            Some(ChatErrorKind::TooLong)
        } else if self.words.iter().any(|word| rejected.contains(&word.as_str())) {
            Some(ChatErrorKind::Rejected)
        } else {
            None
        }
    }

    /// A quota that is used up does not come back by asking again.
    fn is_spent(&self) -> bool {
        self.words.iter().any(|word| {
            matches!(word.as_str(), "insufficient_quota" | "billing_error" | "billing_hard_limit_reached")
        })
    }
}

/// Whether an answer with this status may well be another one later.
fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 409 | 429 | 500..=599)
}

/// One line of bounded length.
pub(crate) fn trimmed(message: &str) -> String {
    let mut line = String::new();
    for word in message.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        // Four bytes are the longest character, so more words cannot be needed.
        if line.len() > MOST_DETAIL * 4 {
            break;
        }
    }
    if let Some((end, _)) = line.char_indices().nth(MOST_DETAIL) {
        line.truncate(end);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests;
