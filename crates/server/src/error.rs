//! Errors of the HTTP API.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use quarterdeck_agents::text::Refusal;
use quarterdeck_contracts::{ErrorType, StoreError, ToolError};
use quarterdeck_runtime::{Holder, SessionError};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::routes::openapi::envelope::{ErrorTypeShape, any};

/// A refused request, with a message for the client's developer.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) kind: ErrorType,
    pub(crate) message: String,
    pub(crate) retryable: bool,
    pub(crate) details: Option<Value>,
    pub(crate) retry_after: Option<u64>,
    /// Overrules what a client makes of the status: the OpenAI clients read `x-should-retry`.
    pub(crate) should_retry: Option<bool>,
    pub(crate) timeout_until: Option<String>,
    /// The OpenAI API's `param` and `code`.
    pub(crate) param: Option<&'static str>,
    pub(crate) code: Option<&'static str>,
    /// The node that can answer the request.
    pub(crate) held_by: Option<Box<Holder>>,
}

impl ApiError {
    pub(crate) fn new(kind: ErrorType, message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::from_u16(kind.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            kind,
            message: message.into(),
            retryable: false,
            details: None,
            retry_after: None,
            should_retry: None,
            timeout_until: None,
            param: None,
            code: None,
            held_by: None,
        }
    }

    pub(crate) fn validation(message: impl Into<String>) -> Self {
        Self::new(ErrorType::Validation, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorType::NotFound, message)
    }

    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    pub(crate) fn transient(message: impl Into<String>, seconds: u64) -> Self {
        Self { retryable: true, retry_after: Some(seconds), ..Self::new(ErrorType::Transient, message) }
    }

    pub(crate) fn rate_limited(message: impl Into<String>, seconds: u64) -> Self {
        Self { retryable: true, retry_after: Some(seconds), ..Self::new(ErrorType::RateLimit, message) }
    }

    /// Logs an internal error and hides it from the client.
    pub(crate) fn internal(what: &str, error: &dyn std::fmt::Display) -> Self {
        tracing::error!(error = %error, "{what}");
        Self { retryable: true, ..Self::transient("An internal error occurred. Try again.", 2) }
    }

    /// Another node has what the request needs, and answers it.
    pub(crate) fn held_by(holder: Box<Holder>) -> Self {
        Self { held_by: Some(holder), ..Self::moved() }
    }

    /// The session of the request is about to be, or has been, taken over by another node.
    fn moved() -> Self {
        Self::transient("This conversation is being moved to another node. Try again.", 1)
    }

    /// A store that cannot be reached is told of: nothing was done, and the same request may succeed soon. Any other failure
    /// of it is an internal error.
    pub(crate) fn store(what: &str, error: &StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => {
                tracing::warn!(error = %error, "{what}");
                Self::transient(
                    "The database cannot be reached. Nothing was done; try again in a few seconds.",
                    5,
                )
            }
            error => Self::internal(what, error),
        }
    }

    fn body(&self) -> ErrorBody<'_> {
        let Self { kind, message, retryable, details, timeout_until, .. } = self;
        let error = ErrorDetails { kind: *kind, message, retryable: *retryable, details: details.as_ref() };
        ErrorBody { error, timeout_until: timeout_until.as_deref() }
    }

    /// In the OpenAI API's format, whose errors have exactly four keys.
    pub(crate) fn openai(&self) -> Response {
        let Self { message, param, code, timeout_until, .. } = self;
        let kind = openai_kind(self.status.as_u16());
        let error = OpenAiErrorDetails { message, kind, param: *param, code: *code };
        self.with_headers(OpenAiErrorBody { error, timeout_until: timeout_until.as_deref() })
    }

    /// In the error format of the path.
    pub(crate) fn in_form_of(self, uri: &Uri) -> Response {
        if uri.path().starts_with("/v1/") { self.openai() } else { self.into_response() }
    }

    fn with_headers(&self, body: impl Serialize) -> Response {
        let mut response = (self.status, Json(body)).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(should_retry) = self.should_retry {
            let value = HeaderValue::from_static(if should_retry { "true" } else { "false" });
            response.headers_mut().insert(HeaderName::from_static("x-should-retry"), value);
        }
        // The guard passes the request on instead of sending this.
        if let Some(node) = &self.held_by {
            response.extensions_mut().insert(HeldBy(node.clone()));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Marks a response: another node has the session of its request.
#[derive(Debug, Clone)]
pub(crate) struct HeldBy(pub(crate) Box<Holder>);

/// The body of an error.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Error", deny_unknown_fields)]
pub(crate) struct ErrorBody<'a> {
    error: ErrorDetails<'a>,
    /// The end of the client's block; only with BLOCKED.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    timeout_until: Option<&'a str>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
struct ErrorDetails<'a> {
    #[serde(rename = "type")]
    #[schemars(with = "ErrorTypeShape")]
    kind: ErrorType,
    /// One sentence for the client's developer.
    message: &'a str,
    /// Whether the same request may succeed later.
    retryable: bool,
    /// Details for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any")]
    details: Option<&'a Value>,
}

/// The body of an error in the OpenAI API's format.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "OpenAiError", deny_unknown_fields)]
pub(crate) struct OpenAiErrorBody<'a> {
    pub(crate) error: OpenAiErrorDetails<'a>,
    /// The end of the client's block; only with BLOCKED.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub(crate) timeout_until: Option<&'a str>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(crate) struct OpenAiErrorDetails<'a> {
    pub(crate) message: &'a str,
    #[serde(rename = "type")]
    pub(crate) kind: OpenAiErrorType,
    pub(crate) param: Option<&'a str>,
    pub(crate) code: Option<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) enum OpenAiErrorType {
    #[serde(rename = "invalid_request_error")]
    InvalidRequest,
    #[serde(rename = "authentication_error")]
    Authentication,
    #[serde(rename = "rate_limit_error")]
    RateLimit,
    #[serde(rename = "server_error")]
    Server,
}

/// The OpenAI API's error type of a status.
pub(crate) fn openai_kind(status: u16) -> OpenAiErrorType {
    match status {
        401 => OpenAiErrorType::Authentication,
        429 => OpenAiErrorType::RateLimit,
        500.. => OpenAiErrorType::Server,
        _ => OpenAiErrorType::InvalidRequest,
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.with_headers(self.body())
    }
}

impl From<ToolError> for ApiError {
    fn from(error: ToolError) -> Self {
        let mut api = Self::new(error.kind, error.message);
        api.retryable = error.retryable;
        api.details = error.details;
        api
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Session(SessionError::Blocked(block)) => {
                let until = Timestamp::from_millisecond(block.until_ms as i64).unwrap_or(Timestamp::MAX);
                Self {
                    timeout_until: Some(until.to_string()),
                    ..Self::new(ErrorType::Blocked, format!("You are blocked until {until}."))
                }
            }
            Refusal::Session(SessionError::NotFound) => Self::not_found("Session not found."),
            Refusal::Session(SessionError::Ended) => Self {
                status: StatusCode::GONE,
                ..Self::new(
                    ErrorType::SessionInactive,
                    "This session has ended. Leave out `sessionId` to start a new one.",
                )
            },
            Refusal::Session(SessionError::InvalidId) => Self::not_found("Session not found."),
            Refusal::Session(SessionError::Version(error)) => Self::validation(error.to_string()),
            // The guard passes the request on, but for one that has been passed on already.
            Refusal::Session(SessionError::HeldElsewhere(holder)) => Self::held_by(holder),
            Refusal::Session(SessionError::Lost) => Self::moved(),
            Refusal::Session(SessionError::Store(error)) => Self::store("session unavailable", &error),
            Refusal::Session(error) => Self::internal("session unavailable", &error),
            Refusal::Busy => Self {
                retryable: true,
                retry_after: Some(1),
                ..Self::new(
                    ErrorType::Conflict,
                    "This conversation is still being answered. Wait until the answer is complete.",
                )
            },
            Refusal::NothingToRegenerate => Self::validation("There is no answer to regenerate."),
            Refusal::Confirmation(error) => (*error).into(),
            other => Self::internal("message failed", &other),
        }
    }
}
