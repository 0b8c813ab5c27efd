//! What went wrong on a line, in the words that the voice agent decides by.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{LiveError, LiveErrorKind, LiveEvent};
use quarterdeck_websocket::{SocketError, UpgradeError, Violation};

use crate::Secret;
use crate::fault::trimmed;

/// Makes errors that name the model and never show the key.
#[derive(Clone)]
pub(crate) struct Troubles {
    pub(crate) model: Arc<str>,
    key: Secret,
}

impl Troubles {
    pub(crate) fn new(model: String, key: Secret) -> Self {
        Self { model: model.into(), key }
    }

    pub(crate) fn error(&self, kind: LiveErrorKind, code: Option<u16>, detail: &str) -> LiveError {
        let detail = self.key.blot(trimmed(detail));
        LiveError { kind, model: self.model.to_string(), code, detail }
    }

    pub(crate) fn unreachable(&self, error: &io::Error) -> LiveError {
        self.error(LiveErrorKind::Lost, None, &format!("nobody answers: {error}"))
    }

    pub(crate) fn no_upgrade(&self, error: &UpgradeError) -> LiveError {
        let kind = match error {
            UpgradeError::Refused { status, reason } => match status {
                401 | 403 => LiveErrorKind::Auth,
                429 | 503 => LiveErrorKind::Busy,
                400..=499 if is_about_key(reason) => LiveErrorKind::Auth,
                408 | 500..=599 => LiveErrorKind::Lost,
                _ => LiveErrorKind::Refused,
            },
            UpgradeError::Malformed(_) => LiveErrorKind::Malformed,
            _ => LiveErrorKind::Lost,
        };
        self.error(kind, None, &error.to_string())
    }

    /// The provider does not take our settings, and says so in a message.
    pub(crate) fn refused(&self, why: &str) -> LiveError {
        let kind = match why {
            _ if is_about_key(why) => LiveErrorKind::Auth,
            _ if is_about_room(why) => LiveErrorKind::Busy,
            _ if why.starts_with("server_error") => LiveErrorKind::Lost,
            _ => LiveErrorKind::Refused,
        };
        self.error(kind, None, &format!("the provider refuses the session: {why}"))
    }

    /// The same event without the key, should the provider have repeated it.
    pub(crate) fn blotted<'a>(&self, event: LiveEvent<'a>) -> LiveEvent<'a> {
        match event {
            LiveEvent::Warning(what) => LiveEvent::Warning(self.key.blot(what)),
            event => event,
        }
    }

    pub(crate) fn closed(&self, code: Option<u16>, reason: &str) -> LiveError {
        let kind = match code {
            _ if is_about_key(reason) => LiveErrorKind::Auth,
            _ if is_about_room(reason) => LiveErrorKind::Busy,
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

    pub(crate) fn violated(&self, violation: Violation) -> LiveError {
        self.error(LiveErrorKind::Malformed, None, &format!("the provider sent {violation}"))
    }

    pub(crate) fn broken(&self, broken: &SocketError) -> LiveError {
        self.error(LiveErrorKind::Lost, None, &broken.to_string())
    }

    pub(crate) fn silent(&self, after: Duration) -> LiveError {
        self.error(LiveErrorKind::TimedOut, None, &format!("nothing came for {} s", after.as_secs()))
    }

    pub(crate) fn too_late(&self, limit: Duration) -> LiveError {
        let detail = format!("the conversation was not opened within {} s", limit.as_secs_f32());
        self.error(LiveErrorKind::TimedOut, None, &detail)
    }

    pub(crate) fn does_not_read(&self) -> LiveError {
        self.error(LiveErrorKind::Lost, None, "the provider does not read what it is sent")
    }
}

/// The codes do not tell a wrong key from a wrong option; the words do.
fn is_about_key(reason: &str) -> bool {
    let reason = reason.to_ascii_lowercase();
    ["api key", "api_key", "unauthenticated", "authentication"].iter().any(|words| reason.contains(words))
}

fn is_about_room(reason: &str) -> bool {
    let reason = reason.to_ascii_lowercase();
    ["quota", "resource_exhausted", "resource exhausted", "rate limit", "rate_limit"]
        .iter()
        .any(|words| reason.contains(words))
}
