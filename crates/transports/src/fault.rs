//! Failed requests, classified by status and by the provider's error object.

use std::time::Duration;

use quarterdeck_contracts::{ChatError, ChatErrorKind, ContextOverflow};
use serde_json::Value;

use crate::overflow;
use crate::retry::parse_retry_delay;

/// How much of a provider's message is kept.
const MAX_DETAIL_CHARS: usize = 500;

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub kind: ChatErrorKind,
    /// What the provider said, or what happened.
    pub detail: String,
    /// The delay that the provider asks for.
    pub retry_after: Option<Duration>,
    /// Whether the same request may succeed later.
    pub is_retryable: bool,
    /// Whether a quota is used up: then it is not retried, whatever a header says.
    pub(crate) is_quota_exhausted: bool,
    /// What the model takes and what it was sent, where the provider says so.
    pub(crate) context: Option<ContextOverflow>,
}

impl Fault {
    pub(crate) fn new(kind: ChatErrorKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            retry_after: None,
            is_retryable: false,
            is_quota_exhausted: false,
            context: None,
        }
    }

    pub(crate) fn retryable(kind: ChatErrorKind, detail: impl Into<String>) -> Self {
        Self { is_retryable: true, ..Self::new(kind, detail) }
    }

    /// What came is not what the protocol says.
    pub(crate) fn garbled(detail: impl Into<String>) -> Self {
        Self::new(ChatErrorKind::Garbled, detail)
    }

    /// The answer stopped in the middle.
    pub(crate) fn cut(detail: impl Into<String>) -> Self {
        Self::retryable(ChatErrorKind::Cut, detail)
    }

    /// An error that a provider reports in the stream, when the status has long been 200.
    pub(crate) fn mid_stream(body: &Value) -> Self {
        let body = ErrorBody::read(body).unwrap_or_default();
        let status = body.status;
        body.fault(status, "the provider broke off")
    }

    /// An answer with an error status.
    pub(crate) fn from_status(status: u16, reason: &str, body: &[u8], is_text: bool) -> Self {
        let opening =
            if reason.is_empty() { format!("HTTP {status}") } else { format!("HTTP {status} {reason}") };
        let error = serde_json::from_slice(body).ok().and_then(|value: Value| ErrorBody::read(&value));
        let error = error.unwrap_or_else(|| ErrorBody {
            message: if is_text { String::from_utf8_lossy(body).into_owned() } else { String::new() },
            ..ErrorBody::default()
        });
        error.fault(Some(status), &opening)
    }

    /// An error object where a stream was expected, if that is what these bytes are.
    pub(crate) fn from_body(body: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(body).ok()?;
        ErrorBody::read(&value).map(|body| {
            let status = body.status;
            body.fault(status, "an error instead of a stream")
        })
    }

    pub(crate) fn into_error(self, model: &str) -> ChatError {
        ChatError {
            kind: self.kind,
            model: model.to_owned(),
            detail: self.detail,
            retry_after: self.retry_after,
            context: self.context,
        }
    }
}

/// What the codes of all three providers mean.
#[rustfmt::skip]
const ERROR_CODES: &[(ChatErrorKind, &[&str])] = &[
    (ChatErrorKind::RateLimited, &[
        "insufficient_quota", "billing_error", "rate_limit_exceeded", "rate_limit_error", "requests", "tokens",
        "RESOURCE_EXHAUSTED",
    ]),
    (ChatErrorKind::Unauthorised, &[
        "authentication_error", "permission_error", "invalid_api_key", "UNAUTHENTICATED", "PERMISSION_DENIED",
        "API_KEY_INVALID",
    ]),
    (ChatErrorKind::Overloaded, &[
        "overloaded_error", "api_error", "timeout_error", "server_error", "internal_server_error", "UNAVAILABLE",
        "INTERNAL", "DEADLINE_EXCEEDED", "ABORTED", "UNKNOWN",
    ]),
    (ChatErrorKind::TooLong, &["context_length_exceeded", "request_too_large", "exceed_context_size_error"]),
    (ChatErrorKind::Refused, &["content_filter", "content_policy_violation", "moderation_blocked"]),
];

/// The error object of a provider. All three have `error` with a `message`, and error codes beside it.
#[derive(Debug, Default)]
struct ErrorBody {
    message: String,
    /// `type`, `code`, `status` and reasons, whichever there are.
    codes: Vec<String>,
    /// A status given as a number in the error itself.
    status: Option<u16>,
    retry_after: Option<Duration>,
    /// The counts of a request that does not fit, as llama.cpp gives them.
    context: Option<ContextOverflow>,
}

impl ErrorBody {
    fn read(value: &Value) -> Option<Self> {
        // Gemini wraps an error in a list when the stream is a JSON list.
        let value = value.get(0).unwrap_or(value);
        let error = value.get("error").filter(|error| !error.is_null())?;
        let mut body = Self::default();
        if let Some(message) = error.as_str() {
            body.message = message.to_owned();
            return Some(body);
        }
        if let Some(message) = error.get("message").and_then(Value::as_str) {
            body.message = message.to_owned();
        }
        let members = ["type", "code", "status"].iter().filter_map(|member| error.get(*member));
        for member in members {
            match member {
                Value::String(word) => body.codes.push(word.clone()),
                Value::Number(number) => body.status = number.as_u64().and_then(|n| u16::try_from(n).ok()),
                _ => {}
            }
        }
        let count = |member: &str| error.get(member).and_then(Value::as_u64);
        body.context = count("n_ctx").map(|limit| ContextOverflow { limit, sent: count("n_prompt_tokens") });
        for detail in error.get("details").and_then(Value::as_array).into_iter().flatten() {
            if let Some(reason) = detail.get("reason").and_then(Value::as_str) {
                body.codes.push(reason.to_owned());
            }
            if let Some(delay) = detail.get("retryDelay").and_then(Value::as_str) {
                body.retry_after = parse_retry_delay(delay);
            }
        }
        Some(body)
    }

    fn fault(self, status: Option<u16>, opening: &str) -> Fault {
        let kind = self.kind(status);
        let is_retryable = match status {
            Some(status) => is_retryable_status(status),
            None => matches!(kind, ChatErrorKind::Overloaded | ChatErrorKind::RateLimited),
        };
        let detail = match one_line(&self.message) {
            message if message.is_empty() => opening.to_owned(),
            message => format!("{opening}: {message}"),
        };
        let is_quota_exhausted = self.is_quota_error();
        let is_too_long = kind == ChatErrorKind::TooLong;
        let context = self.context.or_else(|| overflow::read(&self.message)).filter(|_| is_too_long);
        Fault {
            kind,
            detail,
            retry_after: self.retry_after,
            is_retryable: is_retryable && !is_quota_exhausted,
            is_quota_exhausted,
            context,
        }
    }

    fn kind(&self, status: Option<u16>) -> ChatErrorKind {
        match status {
            Some(401 | 403) => ChatErrorKind::Unauthorised,
            Some(402 | 429) => ChatErrorKind::RateLimited,
            Some(413) => ChatErrorKind::TooLong,
            Some(408 | 409 | 500..) => ChatErrorKind::Overloaded,
            Some(300..=499) => self.kind_by_code().unwrap_or(ChatErrorKind::Rejected),
            _ => self.kind_by_code().unwrap_or(ChatErrorKind::Overloaded),
        }
    }

    fn kind_by_code(&self) -> Option<ChatErrorKind> {
        let kind = |code: &String| ERROR_CODES.iter().find(|(_, codes)| codes.contains(&code.as_str()));
        if let Some((kind, _)) = self.codes.iter().find_map(kind) {
            return Some(*kind);
        }
        // Anthropic, Gemini and most compatible servers say only in prose that the conversation is too long.
        let message = self.message.to_ascii_lowercase();
        let too_long = [
            "prompt is too long",
            "context length",
            "context window",
            "context size",
            "maximum model length",
            "context the overflows",
        ];
        let is_too_long = too_long.iter().any(|phrase| message.contains(phrase))
            || message.contains("token count") && message.contains("exceeds");
        let rejected = ["invalid_request_error", "INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION"];
        if is_too_long {
            Some(ChatErrorKind::TooLong)
        } else if self.codes.iter().any(|code| rejected.contains(&code.as_str())) {
            Some(ChatErrorKind::Rejected)
        } else {
            None
        }
    }

    /// A quota that is used up does not come back by asking again.
    fn is_quota_error(&self) -> bool {
        self.codes.iter().any(|word| {
            matches!(word.as_str(), "insufficient_quota" | "billing_error" | "billing_hard_limit_reached")
        })
    }
}

/// Whether an answer with this status may well be another one later.
fn is_retryable_status(status: u16) -> bool {
    matches!(status, 408 | 409 | 429 | 500..=599)
}

/// One line of bounded length.
pub(crate) fn one_line(message: &str) -> String {
    let mut line = String::new();
    for word in message.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        // Four bytes are the longest character, so more words cannot be needed.
        if line.len() > MAX_DETAIL_CHARS * 4 {
            break;
        }
    }
    if let Some((end, _)) = line.char_indices().nth(MAX_DETAIL_CHARS) {
        line.truncate(end);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests;
