//! Shared error responses.

use quarterdeck_contracts::ErrorType;
use serde_json::{Map, Value, json};

use super::operation::reference;
use super::schemas::{Schemas, schema_of};
use crate::error::{ErrorBody, OpenAiErrorBody};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorFormat {
    Own,
    /// The OpenAI API's.
    OpenAi,
}

impl ErrorFormat {
    pub(crate) fn of(path: &str) -> Self {
        if path.starts_with("/v1/") { Self::OpenAi } else { Self::Own }
    }
}

/// Status, component name, usual error type, and description.
type ErrorRow = (u16, &'static str, ErrorType, &'static str);

const ERRORS: [ErrorRow; 13] = [
    (400, "BadRequest", ErrorType::Validation, "The request is invalid; the message tells why."),
    (
        401,
        "Unauthorised",
        ErrorType::Auth,
        "The credential is missing or invalid, or the path is for operators.",
    ),
    (
        403,
        "Forbidden",
        ErrorType::Blocked,
        "The client is blocked until `timeoutUntil`, or the origin or the host name may not use the API.",
    ),
    (404, "NotFound", ErrorType::NotFound, "Not found, or another client's."),
    (405, "MethodNotAllowed", ErrorType::Validation, "Method not allowed on this path."),
    (408, "TooSlow", ErrorType::Transient, "The body did not arrive in time."),
    (
        409,
        "Busy",
        ErrorType::Conflict,
        "This conversation is still being answered, or the client is in a call.",
    ),
    (410, "Gone", ErrorType::SessionInactive, "The session has ended, or the confirmation has expired."),
    (413, "TooLarge", ErrorType::Validation, "The body is too large."),
    (
        426,
        "UpgradeRequired",
        ErrorType::Validation,
        "The request is no upgrade to a WebSocket of version 13.",
    ),
    (
        429,
        "TooMany",
        ErrorType::RateLimit,
        "Too many requests, messages, answers, calls or connections, or the model's provider limits the rate.",
    ),
    (
        502,
        "BadGateway",
        ErrorType::Transient,
        "The model's provider refused the request, or its answer broke off or cannot be read.",
    ),
    (
        503,
        "Unavailable",
        ErrorType::Transient,
        "The server is shutting down, at capacity or failed, or the model does not answer. Try again.",
    ),
];

/// The component name of a status.
pub(super) fn response_name(status: u16, format: ErrorFormat) -> String {
    let name = ERRORS.iter().find(|(known, ..)| *known == status).map_or("Unavailable", |row| row.1);
    match format {
        ErrorFormat::Own => name.to_owned(),
        ErrorFormat::OpenAi => format!("OpenAi{name}"),
    }
}

/// The responses that a path references, and 405, which applies to undescribed methods.
pub(super) fn responses(paths: &Map<String, Value>, schemas: &mut Schemas) -> Map<String, Value> {
    let referenced = json!(paths).to_string();
    let both = ERRORS.iter().flat_map(|row| [(row, ErrorFormat::Own), (row, ErrorFormat::OpenAi)]);
    let named = both.map(|(row, format)| (response_name(row.0, format), response(row, format, schemas)));
    named
        .filter(|(name, _)| {
            referenced.contains(&format!("/responses/{name}\"")) || name.ends_with("MethodNotAllowed")
        })
        .collect()
}

fn response(&(status, _, kind, meaning): &ErrorRow, format: ErrorFormat, schemas: &mut Schemas) -> Value {
    let mut headers = vec!["X-Request-Id"];
    match status {
        401 => headers.push("WWW-Authenticate"),
        405 => headers.push("Allow"),
        409 | 429 | 502 | 503 => headers.push("Retry-After"),
        _ => {}
    }
    let headers: Map<String, Value> =
        headers.into_iter().map(|name| (name.to_owned(), reference("headers", name))).collect();
    let (schema, example) = match format {
        ErrorFormat::Own => (schema_of::<ErrorBody<'_>>(), example(status, kind, meaning)),
        ErrorFormat::OpenAi => (schema_of::<OpenAiErrorBody<'_>>(), openai_example(status, meaning)),
    };
    json!({
        "description": meaning, "headers": headers,
        "content": { "application/json": { "schema": schemas.response(schema), "example": example } },
    })
}

fn example(status: u16, kind: ErrorType, meaning: &str) -> Value {
    let retryable = matches!(status, 408 | 409 | 429 | 502 | 503);
    let mut example = json!({ "error": { "type": kind, "message": meaning, "retryable": retryable } });
    if kind == ErrorType::Blocked {
        example["error"]["message"] = "You are blocked until 2026-11-15T12:00:00Z.".into();
        example["timeoutUntil"] = "2026-11-15T12:00:00Z".into();
    }
    example
}

fn openai_example(status: u16, meaning: &str) -> Value {
    let (param, code) = if status == 404 { (Some("model"), Some("model_not_found")) } else { (None, None) };
    let kind = crate::error::openai_kind(status);
    json!({ "error": { "message": meaning, "type": kind, "param": param, "code": code } })
}
