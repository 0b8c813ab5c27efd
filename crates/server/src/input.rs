//! Reads requests: bodies within limits, and JSON with errors that name the place.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use quarterdeck_contracts::{ErrorType, parse_json};
use serde::de::DeserializeOwned;
use serde_json::{Number, Value};

use crate::app::App;
use crate::error::ApiError;

/// How long a body may take, so that a silent client does not hold a connection.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The id in a path, decoded from UTF-8.
pub(crate) struct Id(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let id = Path::<String>::from_request_parts(parts, state).await;
        id.map(|Path(id)| Self(id))
            .map_err(|_| ApiError::validation("The id in the path is not UTF-8.").in_form_of(&parts.uri))
    }
}

/// The query of a request; an error names the parameter.
pub(crate) struct QueryParams<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryParams<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(params)| Self(params)).map_err(|rejection| {
            let message = format!("Invalid query: {}.", rejection.body_text());
            ApiError::validation(message).in_form_of(&parts.uri)
        })
    }
}

pub(crate) async fn json(app: &App, body: Body) -> Result<Value, ApiError> {
    json_within(body, app.settings.max_body_bytes, app.settings.max_json_depth).await
}

/// The same within limits of its own, for a path that takes more.
pub(crate) async fn json_within(body: Body, max_bytes: usize, max_depth: usize) -> Result<Value, ApiError> {
    let bytes = json_bytes_within(body, max_bytes, max_depth).await?;
    let text = std::str::from_utf8(&bytes).map_err(|error| not_json(&error))?;
    parse_json(text).map_err(|error| not_json(&error))
}

/// The bytes of a body for another parser, within limits.
pub(crate) async fn json_bytes_within(
    body: Body,
    max_bytes: usize,
    max_depth: usize,
) -> Result<Bytes, ApiError> {
    let Ok(arrived) = tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, max_bytes).collect()).await
    else {
        let message = format!("The body did not arrive within {} s.", BODY_TIMEOUT.as_secs());
        let error = ApiError { retryable: true, ..ApiError::new(ErrorType::Transient, message) };
        return Err(error.with_status(StatusCode::REQUEST_TIMEOUT));
    };
    let bytes = match arrived {
        Ok(collected) => collected.to_bytes(),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            let message = format!("The body is too large; send at most {max_bytes} bytes.");
            return Err(ApiError::validation(message).with_status(StatusCode::PAYLOAD_TOO_LARGE));
        }
        Err(_) => return Err(ApiError::validation("The body is incomplete.")),
    };
    if json_depth(&bytes) > max_depth {
        let message = format!("The JSON is nested too deeply; use at most {max_depth} levels.");
        return Err(ApiError::validation(message));
    }
    Ok(bytes)
}

fn not_json(error: &dyn std::error::Error) -> ApiError {
    ApiError::validation(format!(
        "The body is not JSON: {error}. Send an object with `content-type: application/json`."
    ))
}

/// Reads a body as a type; an error names the field.
pub(crate) async fn typed_json<T: DeserializeOwned>(app: &App, body: Body) -> Result<T, ApiError> {
    typed(json(app, body).await?)
}

/// The same for JSON that was read.
pub(crate) fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ApiError> {
    // serde would read a list as the fields in order.
    if !value.is_object() {
        return Err(ApiError::validation("The body must be a JSON object."));
    }
    let read = serde_json::from_value(with_whole_numbers(value));
    read.map_err(|error| ApiError::new(ErrorType::Validation, format!("{error}.")))
}

/// The same JSON with `3.0` written as `3`: to JSON Schema, and so to our description, both are the same integer.
fn with_whole_numbers(mut value: Value) -> Value {
    write_whole_numbers(&mut value);
    value
}

/// It goes as deep as the value is nested, which has a limit.
fn write_whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            // Beyond 64 bits a number stays as it is.
            if let Some(whole) = number.as_f64().filter(|_| number.is_f64()).and_then(to_whole) {
                *number = whole;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(write_whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(write_whole_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn to_whole(float: f64) -> Option<Number> {
    /// 2^63 and 2^64, which are exact as they stand here.
    const I64_END: f64 = 9_223_372_036_854_775_808.0;
    const U64_END: f64 = 18_446_744_073_709_551_616.0;
    match float {
        _ if float.fract() != 0.0 => None,
        _ if (0.0..U64_END).contains(&float) => Some(Number::from(float as u64)),
        _ if (-I64_END..0.0).contains(&float) => Some(Number::from(float as i64)),
        _ => None,
    }
}

/// The nesting of brackets outside strings, counted before parsing.
pub(crate) fn json_depth(bytes: &[u8]) -> usize {
    let (mut depth, mut max_depth) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                max_depth = max_depth.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    max_depth
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_numbers_are_integers_however_they_are_written() {
        #[derive(Deserialize)]
        struct Body {
            turns: Vec<u64>,
            offset: i64,
            rate: f64,
        }
        let body: Body =
            typed(json!({ "turns": [3.0, 4, 99_999_999.0, 1e19], "offset": -2.0, "rate": 3.0 })).unwrap();
        assert_eq!(body.turns, [3, 4, 99_999_999, 10_000_000_000_000_000_000]);
        assert_eq!((body.offset, body.rate), (-2, 3.0));
        for wrong in [json!(3.5), json!(-1.0), json!(1e20), json!("3")] {
            let error = typed::<Body>(json!({ "turns": [wrong], "offset": 0, "rate": 0 })).err().unwrap();
            assert_eq!(error.kind, ErrorType::Validation, "{wrong}");
        }
    }

    #[test]
    fn json_depth_counts_brackets_outside_strings() {
        assert_eq!(json_depth(br#"{"a":[1,{"b":2}]}"#), 3);
        assert_eq!(json_depth(br#""[[[[""#), 0);
        assert_eq!(json_depth(br#"{"a":"\"[[["}"#), 1);
        assert_eq!(json_depth(b"]]]["), 1);
        assert_eq!(json_depth(b""), 0);
    }
}
