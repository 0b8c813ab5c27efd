//! `GET /` and `GET /deck`: the pages, and the files that they are made of.
//!
//! Files are asked for under a version, which is a hash of all of them: a browser keeps them for good and asks for one
//! thing when the page is loaded again.

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use quarterdeck_contracts::sha256;
use serde_json::{Value, json};

use super::openapi::Operation;
use crate::error::ApiError;
use crate::web::{DECK, Document, PAGE, VERSION, find};

/// Where the files are.
pub(super) const FILES_PATH: &str = "/web/{version}/{*path}";

/// `GET /`.
pub(super) async fn get(headers: HeaderMap) -> Response {
    document(&headers, &PAGE)
}

/// `GET /deck`. It holds nothing of its own: what it shows is asked for, and given to operators.
pub(super) async fn deck(headers: HeaderMap) -> Response {
    document(&headers, &DECK)
}

/// A file.
pub(super) async fn file(
    Path((version, path)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let Some(file) = find(&path) else {
        return Err(ApiError::not_found("There is no such file."));
    };
    // A page of another version of ours, from before an upgrade, gets what there is now and does not keep it.
    let keeps = if version == *VERSION { "public, max-age=31536000, immutable" } else { "no-cache" };
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static(file.kind()));
    Ok(answer(&headers, &sha256(file.bytes), [kind, kept(keeps)], file.bytes))
}

/// A page with the headers that hold it to its own server.
fn document(headers: &HeaderMap, page: &'static Document) -> Response {
    let said = |name, value| (name, HeaderValue::from_static(value));
    let policies = [
        said(header::CONTENT_TYPE, "text/html; charset=utf-8"),
        kept("no-cache"),
        said(header::CONTENT_SECURITY_POLICY, &page.policy),
        said(header::REFERRER_POLICY, "no-referrer"),
        said(HeaderName::from_static("permissions-policy"), "microphone=(self), camera=(), geolocation=()"),
    ];
    answer(headers, &sha256(page.html.as_bytes()), policies, page.html.as_bytes())
}

fn kept(how: &'static str) -> (HeaderName, HeaderValue) {
    (header::CACHE_CONTROL, HeaderValue::from_static(how))
}

/// The bytes, or the word that the browser has them.
fn answer<const N: usize>(
    headers: &HeaderMap,
    hash: &str,
    said: [(HeaderName, HeaderValue); N],
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
        true => (StatusCode::NOT_MODIFIED, said, etag).into_response(),
        false => (said, etag, bytes).into_response(),
    }
}

pub(super) fn described() -> Operation {
    let page = json!({ "text/html": { "schema": { "type": "string" } } });
    Operation::new("getPage", "description", "The page: talk to the agent and watch it work")
        .gives(200, "The page.", page)
        .gives(304, "The page has not changed.", Value::Null)
}

pub(super) fn deck_described() -> Operation {
    let page = json!({ "text/html": { "schema": { "type": "string" } } });
    Operation::new("getDeck", "operation", "The operators' page").gives(200, "The page.", page).gives(
        304,
        "The page has not changed.",
        Value::Null,
    )
}
