//! The credential of a request: a bearer token, none, or something that is refused.
//!
//! A credential that is given and cannot be read is never passed over: a client that sends one means to be known by it.

use axum::http::{HeaderMap, header};
use quarterdeck_contracts::ErrorType;

use crate::error::ApiError;

/// The bearer token of a request, if it has one.
pub(crate) fn bearer(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = given.next() else { return Ok(None) };
    if given.next().is_some() {
        return Err(refused("There are several `Authorization` headers. Send one."));
    }
    let value = value.to_str().map_err(|_| refused(FORM))?.trim();
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
        return Err(refused(FORM));
    }
    Ok(Some(token))
}

/// Whether a token is one that RFC 6750 lets be sent. Secrets that were configured may be anything.
pub(crate) fn is_token(token: &str) -> bool {
    let is_letter = |letter: u8| letter.is_ascii_alphanumeric() || b"-._~+/".contains(&letter);
    let end = token.trim_end_matches('=');
    !end.is_empty() && end.bytes().all(is_letter)
}

/// A credential that is not of the form that is taken.
pub(crate) fn malformed() -> ApiError {
    refused(FORM)
}

/// A credential that proves nothing.
pub(crate) fn invalid() -> ApiError {
    refused("The bearer token is not valid, or has expired.")
}

// What was sent is not repeated: it may be a secret in the wrong place.
const FORM: &str =
    "The `Authorization` header cannot be read. Send `Authorization: Bearer TOKEN`, or leave it out.";

fn refused(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorType::Auth, message)
}
