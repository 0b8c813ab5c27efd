//! What a handler may know and do while it runs. Everything else it would need is not there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{BoxFuture, CancellationToken, HandlerFault};
use crate::telemetry::TraceContext;
use crate::{Capability, ErrorType, Mode, ToolError};

/// One call's world.
///
/// Capabilities do work; there is none that manufactures an intent or changes session state. An implementation
/// never hands out a confirmation token, a provider's key or another client's data.
pub trait Context: Send + Sync {
    /// Who calls, where and how. Read once when the handler starts.
    fn facts(&self) -> &CallFacts;

    /// The time, as this call sees it. Handlers read no other clock, so that tests can hold it still.
    fn now(&self) -> SystemTime;

    /// A line for the operator's log.
    fn log(&self, level: LogLevel, text: &str);

    /// Says why the handler has no good answer, to its author and the operator alone. Of several reports of one
    /// execution the first counts.
    fn report_fault(&self, fault: HandlerFault);

    /// An entry for the audit trail, under the handler's own event name.
    fn audit(&self, event: &str, data: Value);

    /// A note to the client while the work goes on.
    fn progress(&self, text: &str);

    /// A partial result, which the client shows in place of the one before it until the answer is there. `false` when it
    /// is not passed on: it is too large, or there were too many or they came too fast. It never waits for a client.
    fn emit(&self, chunk: Value) -> bool;

    /// Cancelled when the call should stop: the user stops it, the session ends, or its deadline is near.
    fn signal(&self) -> CancellationToken;

    /// The handler has sent something that may have changed the world outside: what fails from now on may have acted.
    fn mark_outside_effect(&self) {}

    /// Whether the world outside may have been changed.
    fn has_outside_effect(&self) -> bool {
        false
    }

    /// The span of the call, which requests to other services are made a part of; `None` where spans are switched off.
    fn span(&self) -> Option<TraceContext> {
        None
    }

    /// Uses a capability. One that the tool did not declare, or that this runtime does not have, answers with an
    /// error; it never panics.
    fn request(&self, call: CapabilityCall) -> BoxFuture<Result<Value, CapabilityError>>;
}

/// One use of a capability: `store.get`, `kb.search`, `messaging.send`.
#[derive(Debug, Clone, PartialEq)]
pub struct CapabilityCall {
    /// Which capability.
    pub capability: Capability,
    /// What to do with it.
    pub method: String,
    /// With what, as a list of arguments.
    pub args: Vec<Value>,
}

/// How loudly a handler speaks to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum LogLevel {
    Debug,
    Info,
    Warn,
    Error,
}

/// Who calls, where and how. Made for every call, so its parts are shared rather than copied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallFacts {
    /// the user or device on the other end, stable across sessions.
    pub client_id: Arc<str>,
    /// How they reach the agent.
    pub mode: Mode,
    /// This call.
    pub call_id: Arc<str>,
    /// The tool that is called.
    pub tool: Arc<ToolFacts>,
    /// The conversation.
    pub session: Arc<SessionFacts>,
    /// What a gate changed: `{"top_k": {"asked": 10, "given": 3}}`.
    #[serde(default)]
    pub clamped: BTreeMap<String, Value>,
    /// What the handler may use.
    pub capabilities: Arc<[Capability]>,
    /// What the handler's precheck saw before the user approved the call: [`Precheck::seen`](super::Precheck::seen). Null
    /// if there was none.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub seen: Value,
}

/// The tool, as its handler sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ToolFacts {
    pub id: Arc<str>,
    pub version: Arc<str>,
    pub idempotent: bool,
}

/// The conversation, as a handler sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionFacts {
    /// The session's id.
    pub id: String,
    /// Whether it has not ended.
    pub is_active: bool,
    /// Which turn this is, counted from one.
    pub turn: u64,
    /// The version of the registry that the session is pinned to.
    pub tools_version: String,
    /// A copy of the session's state.
    pub state: Value,
}

/// Why a capability did not do what was asked. Handlers can catch it and look at the code; uncaught, it becomes
/// the fitting error of the call.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct CapabilityError {
    /// What kind of failure it was.
    pub code: CapabilityErrorCode,
    /// One sentence.
    pub message: String,
    /// How long to wait before trying again, in seconds.
    pub retry_after_seconds: Option<f64>,
}

/// The codes that handlers can switch on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "the names are the contract")]
pub enum CapabilityErrorCode {
    Timeout,
    InvalidNamespace,
    RateLimit,
    AuthError,
    NotFound,
    Conflict,
    NotAvailable,
    NotDeclared,
    InvalidArgument,
    OutcomeUnknown,
    Refused,
}

impl CapabilityErrorCode {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "TIMEOUT",
            Self::InvalidNamespace => "INVALID_NAMESPACE",
            Self::RateLimit => "RATE_LIMIT",
            Self::AuthError => "AUTH_ERROR",
            Self::NotFound => "NOT_FOUND",
            Self::Conflict => "CONFLICT",
            Self::NotAvailable => "NOT_AVAILABLE",
            Self::NotDeclared => "NOT_DECLARED",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::OutcomeUnknown => "OUTCOME_UNKNOWN",
            Self::Refused => "REFUSED",
        }
    }
}

impl CapabilityError {
    /// An error without a time to wait.
    pub fn new(code: CapabilityErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retry_after_seconds: None }
    }

    /// The use of a capability that is not there, or of a method that it does not have.
    pub fn not_available(capability: &Capability) -> Self {
        Self::new(CapabilityErrorCode::NotAvailable, format!("{capability} is not available here"))
    }

    /// The use of a capability that `schema.json` does not name.
    pub fn not_declared(line: &str) -> Self {
        Self::new(CapabilityErrorCode::NotDeclared, format!("add {line} to schema.json to use this"))
    }
}

/// What an uncaught capability error makes of a call.
impl From<CapabilityError> for ToolError {
    fn from(error: CapabilityError) -> Self {
        let kind = match error.code {
            CapabilityErrorCode::Timeout | CapabilityErrorCode::NotAvailable => ErrorType::Transient,
            CapabilityErrorCode::InvalidNamespace | CapabilityErrorCode::InvalidArgument => {
                ErrorType::Validation
            }
            CapabilityErrorCode::RateLimit => ErrorType::RateLimit,
            CapabilityErrorCode::AuthError => ErrorType::Auth,
            CapabilityErrorCode::NotFound => ErrorType::NotFound,
            CapabilityErrorCode::Conflict => ErrorType::Conflict,
            CapabilityErrorCode::NotDeclared | CapabilityErrorCode::Refused => ErrorType::Permanent,
            CapabilityErrorCode::OutcomeUnknown => return outcome_unknown(error.message),
        };
        let mut failure = ToolError::new(kind, error.message);
        failure.retryable = matches!(kind, ErrorType::Transient | ErrorType::RateLimit);
        failure.retry_after_ms = error.retry_after_seconds.map(|seconds| (seconds.max(0.0) * 1_000.0) as u64);
        failure.details = Some(json!({ "code": error.code.as_str() }));
        failure
    }
}

/// A change whose answer was lost. To make it again may make it twice.
fn outcome_unknown(message: String) -> ToolError {
    let code = CapabilityErrorCode::OutcomeUnknown.as_str();
    ToolError {
        partial_side_effects: Some(true),
        ..ToolError::new(ErrorType::Transient, message)
            .with_details(json!({ "code": code, "outcome": "unknown" }))
            .with_suggestion("Tell the user, and look whether it was done before trying again.")
    }
}
