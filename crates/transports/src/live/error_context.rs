//! Errors of a live connection, in the kinds that the voice agent decides by.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{LiveError, LiveErrorKind, LiveEvent};
use quarterdeck_websocket::{SocketError, UpgradeError, Violation};

use crate::Secret;
use crate::fault::one_line;

/// Makes errors that name the model and never contain the key.
#[derive(Clone)]
pub(crate) struct ErrorContext {
    pub(crate) model: Arc<str>,
    key: Secret,
}

impl ErrorContext {
    pub(crate) fn new(model: String, key: Secret) -> Self {
        Self { model: model.into(), key }
    }

    pub(crate) fn error(&self, kind: LiveErrorKind, code: Option<u16>, detail: &str) -> LiveError {
        let detail = self.key.redact(one_line(detail));
        LiveError { kind, model: self.model.to_string(), code, detail }
    }

    pub(crate) fn unreachable(&self, error: &io::Error) -> LiveError {
        self.error(LiveErrorKind::Lost, None, &format!("cannot connect: {error}"))
    }

    pub(crate) fn upgrade_failed(&self, error: &UpgradeError) -> LiveError {
        let kind = match error {
            UpgradeError::Refused { status, reason } => match status {
                401 | 403 => LiveErrorKind::Auth,
                429 | 503 => LiveErrorKind::Busy,
                400..=499 if names_key(reason) => LiveErrorKind::Auth,
                408 | 500..=599 => LiveErrorKind::Lost,
                _ => LiveErrorKind::Refused,
            },
            UpgradeError::Malformed(_) => LiveErrorKind::Malformed,
            _ => LiveErrorKind::Lost,
        };
        self.error(kind, None, &error.to_string())
    }

    /// The provider rejects our settings with a message.
    pub(crate) fn session_refused(&self, why: &str) -> LiveError {
        let kind = match why {
            _ if names_key(why) => LiveErrorKind::Auth,
            _ if names_quota(why) => LiveErrorKind::Busy,
            _ if why.starts_with("server_error") => LiveErrorKind::Lost,
            _ => LiveErrorKind::Refused,
        };
        self.error(kind, None, &format!("the provider refuses the session: {why}"))
    }

    /// Removes the key, should the provider have repeated it.
    pub(crate) fn redact_event<'a>(&self, event: LiveEvent<'a>) -> LiveEvent<'a> {
        match event {
            LiveEvent::Warning(what) => LiveEvent::Warning(self.key.redact(what)),
            event => event,
        }
    }

    pub(crate) fn closed(&self, code: Option<u16>, reason: &str) -> LiveError {
        let kind = match code {
            _ if names_key(reason) => LiveErrorKind::Auth,
            _ if names_quota(reason) => LiveErrorKind::Busy,
            Some(1003 | 1007 | 1008 | 1009) => LiveErrorKind::Refused,
            Some(1013) => LiveErrorKind::Busy,
            _ => LiveErrorKind::Lost,
        };
        let detail = match (code, reason) {
            (Some(code), "") => format!("the provider closed the connection ({code})"),
            (Some(code), reason) => format!("the provider closed the connection ({code}): {reason}"),
            (None, _) => "the provider closed the connection without a code".to_owned(),
        };
        self.error(kind, code, &detail)
    }

    pub(crate) fn protocol_violation(&self, violation: Violation) -> LiveError {
        self.error(LiveErrorKind::Malformed, None, &format!("the provider sent {violation}"))
    }

    pub(crate) fn connection_lost(&self, connection_lost: &SocketError) -> LiveError {
        self.error(LiveErrorKind::Lost, None, &connection_lost.to_string())
    }

    pub(crate) fn idle(&self, after: Duration) -> LiveError {
        self.error(LiveErrorKind::TimedOut, None, &format!("nothing came for {} s", after.as_secs()))
    }

    pub(crate) fn connect_timeout(&self, limit: Duration) -> LiveError {
        let detail = format!("the conversation was not opened within {} s", limit.as_secs_f32());
        self.error(LiveErrorKind::TimedOut, None, &detail)
    }

    pub(crate) fn send_queue_full(&self) -> LiveError {
        self.error(LiveErrorKind::Lost, None, "the provider does not read what it is sent")
    }
}

/// The codes do not tell a wrong key from a wrong option; the words do.
fn names_key(reason: &str) -> bool {
    let reason = reason.to_ascii_lowercase();
    ["api key", "api_key", "unauthenticated", "authentication"].iter().any(|words| reason.contains(words))
}

fn names_quota(reason: &str) -> bool {
    let reason = reason.to_ascii_lowercase();
    ["quota", "resource_exhausted", "resource exhausted", "rate limit", "rate_limit"]
        .iter()
        .any(|words| reason.contains(words))
}
