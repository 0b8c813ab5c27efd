//! What a client is told when a request is not answered.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use quarterdeck_agents::text::Refusal;
use quarterdeck_contracts::{ErrorType, ToolError};
use quarterdeck_runtime::SessionError;
use serde_json::{Map, Value, json};

/// A refusal of a request, in words for whoever wrote it.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) kind: ErrorType,
    pub(crate) message: String,
    pub(crate) retryable: bool,
    pub(crate) details: Option<Value>,
    pub(crate) retry_after: Option<u64>,
    /// Until when the client is blocked.
    pub(crate) timeout_until: Option<String>,
    /// Which part of the request it is about, in the OpenAI API's words.
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

    /// What the inside must not tell, with a line in the log.
    pub(crate) fn internal(what: &str, error: &dyn std::fmt::Display) -> Self {
        tracing::error!(error = %error, "{what}");
        Self { retryable: true, ..Self::transient("Something went wrong on our side. Please try again.", 2) }
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

    /// The same in the form of the OpenAI API, whose errors have four keys and no others.
    pub(crate) fn openai(&self) -> Response {
        let kind = openai_kind(self.status.as_u16());
        let error = json!({ "message": self.message, "type": kind, "param": self.param, "code": self.code });
        let mut body = json!({ "error": error });
        // It stands beside the error, where those clients do not look and ours do.
        if let Some(until) = &self.timeout_until {
            body["timeoutUntil"] = json!(until);
        }
        self.with_headers(Json(body))
    }

    /// In the form that clients of that path expect.
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

/// The OpenAI API's word for what goes with a status.
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
            Refusal::Session(SessionError::NotFound) => Self::not_found("There is no such session of yours."),
            Refusal::Session(SessionError::Ended) => Self {
                status: StatusCode::GONE,
                ..Self::new(
                    ErrorType::SessionInactive,
                    "This session has ended. Leave out `sessionId` to begin a new one.",
                )
            },
            Refusal::Session(SessionError::InvalidId) => Self::not_found("There is no session of that id."),
            Refusal::Session(error) => Self::internal("a session could not be reached", &error),
            Refusal::Busy => Self {
                retryable: true,
                retry_after: Some(1),
                ..Self::new(ErrorType::Conflict, "An answer is still being written in this conversation.")
            },
            Refusal::NothingToRegenerate => Self::validation("There is no message to answer anew."),
            Refusal::Confirmation(error) => (*error).into(),
            other => Self::internal("a message could not be answered", &other),
        }
    }
}
