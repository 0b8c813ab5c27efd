//! Why a call did not succeed, in words that a model, a client and an operator share.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use crate::ConfirmationRequest;

/// What kind of failure it was. Who may raise which is in the specification's table; the
/// properties that follow from the type alone are methods here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "the names are the contract; the methods say what they mean")]
pub enum ErrorType {
    Validation,
    NotFound,
    ModeRestricted,
    BudgetExceeded,
    LoopDetected,
    Unavailable,
    ConfirmationRequired,
    ConfirmationExpired,
    ConfirmationDenied,
    ConfirmationInvalid,
    SessionInactive,
    SessionActive,
    Blocked,
    Transient,
    RateLimit,
    Auth,
    Conflict,
    Permanent,
    Cancelled,
    Internal,
}

impl ErrorType {
    /// Every type, in the order of the specification.
    pub const ALL: [Self; 20] = [
        Self::Validation,
        Self::NotFound,
        Self::ModeRestricted,
        Self::BudgetExceeded,
        Self::LoopDetected,
        Self::Unavailable,
        Self::ConfirmationRequired,
        Self::ConfirmationExpired,
        Self::ConfirmationDenied,
        Self::ConfirmationInvalid,
        Self::SessionInactive,
        Self::SessionActive,
        Self::Blocked,
        Self::Transient,
        Self::RateLimit,
        Self::Auth,
        Self::Conflict,
        Self::Permanent,
        Self::Cancelled,
        Self::Internal,
    ];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Validation => "VALIDATION",
            Self::NotFound => "NOT_FOUND",
            Self::ModeRestricted => "MODE_RESTRICTED",
            Self::BudgetExceeded => "BUDGET_EXCEEDED",
            Self::LoopDetected => "LOOP_DETECTED",
            Self::Unavailable => "UNAVAILABLE",
            Self::ConfirmationRequired => "CONFIRMATION_REQUIRED",
            Self::ConfirmationExpired => "CONFIRMATION_EXPIRED",
            Self::ConfirmationDenied => "CONFIRMATION_DENIED",
            Self::ConfirmationInvalid => "CONFIRMATION_INVALID",
            Self::SessionInactive => "SESSION_INACTIVE",
            Self::SessionActive => "SESSION_ACTIVE",
            Self::Blocked => "BLOCKED",
            Self::Transient => "TRANSIENT",
            Self::RateLimit => "RATE_LIMIT",
            Self::Auth => "AUTH",
            Self::Conflict => "CONFLICT",
            Self::Permanent => "PERMANENT",
            Self::Cancelled => "CANCELLED",
            Self::Internal => "INTERNAL",
        }
    }

    /// The type of that name on the wire.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// The HTTP status that says the same.
    pub fn http_status(self) -> u16 {
        match self {
            Self::Validation | Self::ConfirmationInvalid => 400,
            Self::Auth => 401,
            Self::ModeRestricted | Self::Unavailable | Self::ConfirmationDenied | Self::Blocked => 403,
            Self::NotFound => 404,
            Self::ConfirmationRequired | Self::SessionInactive | Self::SessionActive | Self::Conflict => 409,
            Self::ConfirmationExpired => 410,
            Self::Permanent => 422,
            Self::BudgetExceeded | Self::LoopDetected | Self::RateLimit => 429,
            Self::Cancelled => 499,
            Self::Internal => 500,
            Self::Transient => 503,
        }
    }

    /// Whether it says something about the request, and nothing about the health of the tool that answered: what was asked
    /// for does not exist, is not allowed, conflicts with something, or is not wanted any more. Such answers do not count
    /// in error rates.
    pub fn is_about_request(self) -> bool {
        match self {
            Self::Validation
            | Self::NotFound
            | Self::ModeRestricted
            | Self::BudgetExceeded
            | Self::LoopDetected
            | Self::ConfirmationRequired
            | Self::ConfirmationExpired
            | Self::ConfirmationDenied
            | Self::ConfirmationInvalid
            | Self::SessionInactive
            | Self::SessionActive
            | Self::Blocked
            | Self::Conflict
            | Self::Cancelled => true,
            Self::Unavailable
            | Self::Transient
            | Self::RateLimit
            | Self::Auth
            | Self::Permanent
            | Self::Internal => false,
        }
    }

    /// Whether only the orchestrator may raise it. A handler that does has a bug.
    pub fn is_confirmation(self) -> bool {
        matches!(
            self,
            Self::ConfirmationRequired
                | Self::ConfirmationExpired
                | Self::ConfirmationDenied
                | Self::ConfirmationInvalid
        )
    }
}

impl fmt::Display for ErrorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The `error` of an envelope, and what a handler returns when it cannot succeed.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[error("{kind}: {message}")]
#[serde(rename_all = "camelCase")]
pub struct ToolError {
    /// What kind of failure it was.
    #[serde(rename = "type")]
    pub kind: ErrorType,
    /// One sentence that the model can act on.
    pub message: String,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// Structured details; for VALIDATION the list of `{path, keyword, message}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// What to do instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// Whether something may have been changed already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_side_effects: Option<bool>,
    /// Whether a retry is safe only with an idempotency key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_required: Option<bool>,
    /// How long to wait before trying again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// How often to try again at the most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// The question to the user; only with CONFIRMATION_REQUIRED. Boxed, because every answer has the room for an error.
    #[serde(rename = "confirmation_request", skip_serializing_if = "Option::is_none")]
    pub confirmation_request: Option<Box<ConfirmationRequest>>,
}

impl ToolError {
    /// An error that is not retryable and says nothing more.
    pub fn new(kind: ErrorType, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retryable: false,
            details: None,
            suggestion: None,
            partial_side_effects: None,
            idempotency_required: None,
            retry_after_ms: None,
            max_retries: None,
            confirmation_request: None,
        }
    }

    /// Says what to do instead.
    pub fn with_suggestion(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// Adds structured details.
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// Says that the same call may succeed later.
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// The same error without what only the user may hold.
    pub fn for_model(&self) -> Self {
        let mut copy = self.clone();
        copy.confirmation_request =
            copy.confirmation_request.map(|request| Box::new(request.without_secrets()));
        copy
    }
}

/// What may stand on the wire: a handler may leave out `retryable`, and may invent a type.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireError {
    #[serde(rename = "type")]
    kind: String,
    message: String,
    #[serde(default)]
    retryable: bool,
    details: Option<Value>,
    suggestion: Option<String>,
    partial_side_effects: Option<bool>,
    idempotency_required: Option<bool>,
    retry_after_ms: Option<u64>,
    max_retries: Option<u32>,
    #[serde(rename = "confirmation_request")]
    confirmation_request: Option<Box<ConfirmationRequest>>,
}

impl<'de> Deserialize<'de> for ToolError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = WireError::deserialize(deserializer)?;
        let known = ErrorType::find(&wire.kind);
        Ok(Self {
            kind: known.unwrap_or(ErrorType::Permanent),
            message: wire.message,
            retryable: wire.retryable,
            details: match known {
                Some(_) => wire.details,
                None => Some(remember_type(wire.details, wire.kind)),
            },
            suggestion: wire.suggestion,
            partial_side_effects: wire.partial_side_effects,
            idempotency_required: wire.idempotency_required,
            retry_after_ms: wire.retry_after_ms,
            max_retries: wire.max_retries,
            confirmation_request: wire.confirmation_request,
        })
    }
}

/// Keeps a type that we do not know in `details.type`, beside what was there.
fn remember_type(details: Option<Value>, unknown: String) -> Value {
    match details {
        Some(Value::Object(mut details)) => {
            details.insert("type".into(), unknown.into());
            Value::Object(details)
        }
        Some(other) => json!({ "type": unknown, "details": other }),
        None => json!({ "type": unknown }),
    }
}
