//! What a client sends: bodies within limits, and JSON whose faults are named.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use http_body_util::{BodyExt, Limited};
use quarterdeck_contracts::{ErrorType, parse_json};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::app::App;
use crate::error::ApiError;

/// How long a body may take to arrive, so that nobody holds a connection by sending nothing.
const PATIENCE: Duration = Duration::from_secs(30);

/// The id in a path. One that is no text is refused in the form that the path's clients expect.
pub(crate) struct Id(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let id = Path::<String>::from_request_parts(parts, state).await;
        id.map(|Path(id)| Self(id)).map_err(|_| {
            ApiError::validation("The id in the path is not text in UTF-8.").in_form_of(&parts.uri)
        })
    }
}

/// What is asked for in the query of a path. A fault names its place.
pub(crate) struct Asking<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asking<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let asked = Query::<T>::from_request_parts(parts, state).await;
        asked.map(|Query(asked)| Self(asked)).map_err(|rejection| {
            let message = format!("The query cannot be read: {}.", rejection.body_text());
            ApiError::validation(message).in_form_of(&parts.uri)
        })
    }
}

/// Reads a body as JSON.
pub(crate) async fn json(app: &App, body: Body) -> Result<Value, ApiError> {
    let most = app.settings.max_body_bytes;
    let Ok(arrived) = tokio::time::timeout(PATIENCE, Limited::new(body, most).collect()).await else {
        let message = format!("The body did not arrive within {} seconds.", PATIENCE.as_secs());
        let error = ApiError { retryable: true, ..ApiError::new(ErrorType::Transient, message) };
        return Err(error.with_status(StatusCode::REQUEST_TIMEOUT));
    };
    let bytes = match arrived {
        Ok(collected) => collected.to_bytes(),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            let message = format!("The body is too large; {most} bytes are the most.");
            return Err(ApiError::validation(message).with_status(StatusCode::PAYLOAD_TOO_LARGE));
        }
        Err(_) => return Err(ApiError::validation("The body did not arrive whole.")),
    };
    if depth(&bytes) > app.settings.max_json_depth {
        let message =
            format!("The JSON is nested too deeply; {} levels are the most.", app.settings.max_json_depth);
        return Err(ApiError::validation(message));
    }
    let text = std::str::from_utf8(&bytes).map_err(|error| not_json(&error))?;
    parse_json(text).map_err(|error| not_json(&error))
}

fn not_json(error: &dyn std::error::Error) -> ApiError {
    ApiError::validation(format!(
        "The body is not JSON: {error}. Send an object with `content-type: application/json`."
    ))
}

/// Reads a body as a type whose fields are all known. A fault names its place.
pub(crate) async fn typed<T: DeserializeOwned>(app: &App, body: Body) -> Result<T, ApiError> {
    let value = json(app, body).await?;
    // A list would be taken for the fields in their order.
    if !value.is_object() {
        return Err(ApiError::validation("The body must be a JSON object."));
    }
    serde_json::from_value(value).map_err(|error| ApiError::new(ErrorType::Validation, format!("{error}.")))
}

/// How deep brackets nest outside of strings. Counted before parsing, so that depth costs nothing.
pub(crate) fn depth(bytes: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_brackets_but_not_those_in_strings() {
        assert_eq!(depth(br#"{"a":[1,{"b":2}]}"#), 3);
        assert_eq!(depth(br#""[[[[""#), 0);
        assert_eq!(depth(br#"{"a":"\"[[["}"#), 1);
        assert_eq!(depth(b"]]]["), 1);
        assert_eq!(depth(b""), 0);
    }
}
