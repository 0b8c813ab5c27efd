//! `GET /` and `GET /deck`: the pages and their files.
//!
//! File URLs contain a version, the hash of all files, so that browsers can cache them for ever.

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use quarterdeck_contracts::sha256;

use super::openapi::{Media, Operation};
use crate::error::ApiError;
use crate::web::{DECK, Document, PAGE, VERSION, find};

pub(super) const FILES_PATH: &str = "/web/{version}/{*path}";

/// `GET /`.
pub(super) async fn get(headers: HeaderMap) -> Response {
    document(&headers, &PAGE)
}

/// `GET /deck`. The document itself is public; its data needs the operators' token.
pub(super) async fn deck(headers: HeaderMap) -> Response {
    document(&headers, &DECK)
}

pub(super) async fn file(
    Path((version, path)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let Some(file) = find(&path) else {
        return Err(ApiError::not_found("File not found."));
    };
    // A page from before an upgrade gets the current file, uncached.
    let caching = if version == *VERSION { "public, max-age=31536000, immutable" } else { "no-cache" };
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static(file.content_type()));
    Ok(respond(&headers, &sha256(file.bytes), [kind, cache_control(caching)], file.bytes))
}

/// A page with its security headers.
fn document(headers: &HeaderMap, page: &'static Document) -> Response {
    let value = |name, value| (name, HeaderValue::from_static(value));
    let policies = [
        value(header::CONTENT_TYPE, "text/html; charset=utf-8"),
        cache_control("no-cache"),
        value(header::CONTENT_SECURITY_POLICY, &page.policy),
        value(header::REFERRER_POLICY, "no-referrer"),
        value(HeaderName::from_static("permissions-policy"), "microphone=(self), camera=(), geolocation=()"),
    ];
    respond(headers, &sha256(page.html.as_bytes()), policies, page.html.as_bytes())
}

fn cache_control(value: &'static str) -> (HeaderName, HeaderValue) {
    (header::CACHE_CONTROL, HeaderValue::from_static(value))
}

/// The bytes, or 304 if the browser has them.
fn respond<const N: usize>(
    headers: &HeaderMap,
    hash: &str,
    response_headers: [(HeaderName, HeaderValue); N],
    bytes: &'static [u8],
) -> Response {
    let tag = format!("\"{}\"", &hash[..16]);
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let is_known = known
        .flat_map(|value| value.split(','))
        .map(|tag| tag.trim().trim_start_matches("W/"))
        .any(|known| known == tag || known == "*");
    let etag = [(header::ETAG, tag)];
    match is_known {
        true => (StatusCode::NOT_MODIFIED, response_headers, etag).into_response(),
        false => (response_headers, etag, bytes).into_response(),
    }
}

pub(super) fn describe() -> Operation {
    described("getPage", "description", "The chat page")
}

pub(super) fn describe_deck() -> Operation {
    described("getDeck", "operation", "The operators' page")
}

fn described(id: &str, tag: &str, summary: &str) -> Operation {
    let page = Operation::new(id, tag, summary).response(200, "The page.", vec![Media::html()]);
    page.response(304, "Not modified.", Vec::new())
}
