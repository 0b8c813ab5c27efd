//! The credential of a request: a bearer token or none.
//!
//! A malformed credential is refused, never ignored: the client meant to be identified by it.

use axum::http::{HeaderMap, header};
use quarterdeck_contracts::ErrorType;

use crate::error::ApiError;

pub(crate) fn bearer(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(refused("Send one `Authorization` header, not several."));
    }
    let value = value.to_str().map_err(|_| refused(FORM))?.trim();
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
        return Err(refused(FORM));
    }
    Ok(Some(token))
}

/// Whether it has the syntax of RFC 6750. Configured secrets may be any text.
pub(crate) fn is_b64token(token: &str) -> bool {
    let is_letter = |letter: u8| letter.is_ascii_alphanumeric() || b"-._~+/".contains(&letter);
    let end = token.trim_end_matches('=');
    !end.is_empty() && end.bytes().all(is_letter)
}

pub(crate) fn malformed() -> ApiError {
    refused(FORM)
}

pub(crate) fn invalid() -> ApiError {
    refused("The bearer token is invalid or expired.")
}

// The value is not repeated: it may be a secret.
const FORM: &str =
    "The `Authorization` header is malformed. Send `Authorization: Bearer TOKEN`, or leave it out.";

fn refused(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorType::Auth, message)
}
