//! How requests are refused: the same few answers everywhere.

use quarterdeck_contracts::ErrorType;
use serde_json::{Map, Value, json};

use super::operation::reference;

/// The form of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Ours.
    Own,
    /// The OpenAI API's.
    OpenAi,
}

impl Form {
    /// The form that a path's clients expect.
    pub(crate) fn of(path: &str) -> Self {
        if path.starts_with("/v1/") { Self::OpenAi } else { Self::Own }
    }
}

/// A status, its name here, the type that usually comes with it, and what it means.
type RefusalRow = (u16, &'static str, ErrorType, &'static str);

/// Every status that a request is refused with.
const REFUSALS: [RefusalRow; 13] = [
    (
        400,
        "BadRequest",
        ErrorType::Validation,
        "The request cannot be understood; the message says what is wrong.",
    ),
    (
        401,
        "Unauthorised",
        ErrorType::Auth,
        "The credential is missing, cannot be read or is not valid, or the path is the operators'.",
    ),
    (
        403,
        "Forbidden",
        ErrorType::Blocked,
        "The client is blocked until `timeoutUntil`, or the page's origin or the host name is not one that may use the API.",
    ),
    (404, "NotFound", ErrorType::NotFound, "There is no such thing, or it is somebody else's."),
    (405, "MethodNotAllowed", ErrorType::Validation, "The path does not take that method."),
    (408, "TooSlow", ErrorType::Transient, "The body did not arrive in time."),
    (
        409,
        "Busy",
        ErrorType::Conflict,
        "An answer is still being written in this conversation, or the client is in a call.",
    ),
    (410, "Gone", ErrorType::SessionInactive, "The session has ended, or the question has expired."),
    (413, "TooLarge", ErrorType::Validation, "The body is too large."),
    (422, "Failed", ErrorType::Permanent, "The model failed, and asking again at once will not help."),
    (426, "UpgradeRequired", ErrorType::Validation, "The request asks for no WebSocket of version 13."),
    (
        429,
        "TooMany",
        ErrorType::RateLimit,
        "Too many requests, messages, answers, lines or connections at once.",
    ),
    (
        503,
        "Unavailable",
        ErrorType::Transient,
        "The server is about to stop, is full, or something broke. Try again.",
    ),
];

/// What a status is called among the shared answers.
pub(super) fn name(status: u16, form: Form) -> String {
    let name = REFUSALS.iter().find(|(known, ..)| *known == status).map_or("Unavailable", |row| row.1);
    match form {
        Form::Own => name.to_owned(),
        Form::OpenAi => format!("OpenAi{name}"),
    }
}

/// The shared answers: those that a path mentions, and 405, which is said about methods that are not there.
pub(super) fn responses(paths: &Map<String, Value>) -> Map<String, Value> {
    let mentioned = json!(paths).to_string();
    let both = REFUSALS.iter().flat_map(|row| [(row, Form::Own), (row, Form::OpenAi)]);
    let named = both.map(|(row, form)| (name(row.0, form), response(row, form)));
    named
        .filter(|(name, _)| {
            mentioned.contains(&format!("/responses/{name}\"")) || name.ends_with("MethodNotAllowed")
        })
        .collect()
}

fn response(&(status, _, kind, meaning): &RefusalRow, form: Form) -> Value {
    let mut headers = vec!["X-Request-Id"];
    match status {
        401 => headers.push("WWW-Authenticate"),
        405 => headers.push("Allow"),
        409 | 429 | 503 => headers.push("Retry-After"),
        _ => {}
    }
    let headers: Map<String, Value> =
        headers.into_iter().map(|name| (name.to_owned(), reference("headers", name))).collect();
    let (schema, example) = match form {
        Form::Own => ("Error", example(status, kind, meaning)),
        Form::OpenAi => ("OpenAiError", openai_example(status, meaning)),
    };
    json!({
        "description": meaning, "headers": headers,
        "content": { "application/json": { "schema": reference("schemas", schema), "example": example } },
    })
}

fn example(status: u16, kind: ErrorType, meaning: &str) -> Value {
    let retryable = matches!(status, 408 | 409 | 429 | 503);
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

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    let until = json!({
        "type": "string", "format": "date-time", "description": "Until when the client is blocked; only with BLOCKED.",
    });
    vec![
        (
            "Error",
            json!({
                "type": "object", "required": ["error"], "additionalProperties": false,
                "properties": {
                    "error": {
                        "type": "object", "required": ["type", "message", "retryable"], "additionalProperties": false,
                        "properties": {
                            "type": reference("schemas", "ErrorType"),
                            "message": { "type": "string", "description": "One sentence for whoever wrote the request." },
                            "retryable": { "type": "boolean", "description": "Whether the same request may work later." },
                            "details": { "description": "What a program may want to know." },
                        },
                    },
                    "timeoutUntil": until,
                },
            }),
        ),
        (
            "OpenAiError",
            json!({
                "type": "object", "required": ["error"], "additionalProperties": false,
                "properties": {
                    "error": {
                        "type": "object", "required": ["message", "type", "param", "code"],
                        "additionalProperties": false,
                        "properties": {
                            "message": { "type": "string" },
                            "type": { "enum": [
                                "invalid_request_error", "authentication_error", "rate_limit_error", "server_error",
                            ] },
                            "param": { "type": ["string", "null"] },
                            "code": { "type": ["string", "null"] },
                        },
                    },
                    "timeoutUntil": until,
                },
            }),
        ),
    ]
}
