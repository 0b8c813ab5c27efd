//! What a client sends: bodies within limits, and JSON whose faults are named.

use axum::body::Body;
use axum::http::StatusCode;
use http_body_util::{BodyExt, Limited};
use quarterdeck_contracts::ErrorType;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::app::App;
use crate::error::ApiError;

/// Reads a body as JSON.
pub(crate) async fn json(app: &App, body: Body) -> Result<Value, ApiError> {
    let most = app.settings.max_body_bytes;
    let bytes = match Limited::new(body, most).collect().await {
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
    serde_json::from_slice(&bytes).map_err(|error| {
        ApiError::validation(format!(
            "The body is not JSON: {error}. Send an object with `content-type: application/json`."
        ))
    })
}

/// Reads a body as a type whose fields are all known. A fault names its place.
pub(crate) async fn typed<T: DeserializeOwned>(app: &App, body: Body) -> Result<T, ApiError> {
    let value = json(app, body).await?;
    serde_json::from_value(value).map_err(|error| ApiError::new(ErrorType::Validation, format!("{error}.")))
}

/// How deep brackets nest outside of strings. Counted before parsing, so that depth costs nothing.
fn depth(bytes: &[u8]) -> usize {
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
