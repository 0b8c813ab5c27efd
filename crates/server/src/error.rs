//! Errors of the HTTP API.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use quarterdeck_agents::text::Refusal;
use quarterdeck_contracts::{ErrorType, ToolError};
use quarterdeck_runtime::SessionError;
use serde_json::{Map, Value, json};

/// A refused request, with a message for the client's developer.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) kind: ErrorType,
    pub(crate) message: String,
    pub(crate) retryable: bool,
    pub(crate) details: Option<Value>,
    pub(crate) retry_after: Option<u64>,
    pub(crate) timeout_until: Option<String>,
    /// The OpenAI API's `param` and `code`.
    pub(crate) param: Option<&'static str>,
    pub(crate) code: Option<&'static str>,
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
            timeout_until: None,
            param: None,
            code: None,
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

    fn body(&self) -> Value {
        let mut error = Map::from_iter([
            ("type".to_owned(), json!(self.kind)),
            ("message".to_owned(), json!(self.message)),
            ("retryable".to_owned(), json!(self.retryable)),
        ]);
        if let Some(details) = &self.details {
            error.insert("details".into(), details.clone());
        }
        let mut body = Map::from_iter([("error".to_owned(), Value::Object(error))]);
        if let Some(until) = &self.timeout_until {
            body.insert("timeoutUntil".into(), json!(until));
        }
        Value::Object(body)
    }

    /// In the OpenAI API's format, whose errors have exactly four keys.
    pub(crate) fn openai(&self) -> Response {
        let kind = openai_kind(self.status.as_u16());
        let error = json!({ "message": self.message, "type": kind, "param": self.param, "code": self.code });
        let mut body = json!({ "error": error });
        // Beside the error, where only our own clients look.
        if let Some(until) = &self.timeout_until {
            body["timeoutUntil"] = json!(until);
        }
        self.with_headers(Json(body))
    }

    /// In the error format of the path.
    pub(crate) fn in_form_of(self, uri: &Uri) -> Response {
        if uri.path().starts_with("/v1/") { self.openai() } else { self.into_response() }
    }

    fn with_headers(&self, body: Json<Value>) -> Response {
        let mut response = (self.status, body).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// The OpenAI API's error type of a status.
pub(crate) fn openai_kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.with_headers(Json(self.body()))
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
