//! `GET /` and `GET /deck`: the pages and their files.
//!
//! File URLs contain a version, the hash of all files, so that browsers can cache them for ever.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use quarterdeck_contracts::sha256;

use super::openapi::{Media, Operation};
use crate::app::App;
use crate::error::ApiError;
use crate::web::{DECK, Document, Encoding, File, PAGE, Policy, VERSION, find_served};

pub(super) const FILES_PATH: &str = "/web/{version}/{*path}";

/// `GET /`, with what the operator has set for it.
pub(super) async fn get(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    let Document { html, policy } = PAGE.dress(&app.settings.page.load(), &app.settings.frame_ancestors);
    document(&headers, &policy, html)
}

/// `GET /deck`. The document itself is public; its data needs the operators' token.
pub(super) async fn deck(headers: HeaderMap) -> Response {
    document(&headers, &DECK.policy, DECK.html.as_str())
}

pub(super) async fn file(
    Path((version, path)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let Some(file) = find_served(&path) else {
        return Err(ApiError::not_found("File not found."));
    };
    // A page from before an upgrade gets the current file, uncached.
    let caching = if version == *VERSION { "public, max-age=31536000, immutable" } else { "no-cache" };
    Ok(public(&headers, file, caching).await)
}

/// A file that a page of any origin may load, compressed as its browser accepts it.
pub(super) async fn public(headers: &HeaderMap, file: &'static File, caching: &'static str) -> Response {
    let (bytes, encoding) = file.encoded(Encoding::accepted(headers)).await;
    let value = |name, value| (name, HeaderValue::from_static(value));
    let kinds = [
        value(header::CONTENT_TYPE, file.content_type()),
        cache_control(caching),
        value(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        value(header::VARY, "accept-encoding"),
    ];
    let mut response = respond(headers, &sha256(bytes), kinds, bytes);
    if let Some(name) = encoding.name() {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static(name));
    }
    response
}

/// A page with its security headers.
fn document(headers: &HeaderMap, policy: &Policy, html: impl Into<Bytes>) -> Response {
    let value = |name, value| (name, HeaderValue::from_static(value));
    let html = html.into();
    // Origins are checked where they are read, so that the policy is a header's value.
    let policy = HeaderValue::from_str(&policy.header())
        .unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
    let policies = [
        value(header::CONTENT_TYPE, "text/html; charset=utf-8"),
        cache_control("no-cache"),
        (header::CONTENT_SECURITY_POLICY, policy),
        value(header::REFERRER_POLICY, "no-referrer"),
        value(HeaderName::from_static("permissions-policy"), "microphone=(self), camera=(), geolocation=()"),
    ];
    respond(headers, &sha256(&html), policies, html)
}

fn cache_control(value: &'static str) -> (HeaderName, HeaderValue) {
    (header::CACHE_CONTROL, HeaderValue::from_static(value))
}

/// The bytes, or 304 if the browser has them.
fn respond<const N: usize>(
    headers: &HeaderMap,
    hash: &str,
    response_headers: [(HeaderName, HeaderValue); N],
    bytes: impl Into<Bytes>,
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
        false => (response_headers, etag, bytes.into()).into_response(),
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
