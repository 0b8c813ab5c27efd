//! `GET /docs`: a page that shows the API description. It loads nothing from elsewhere.

use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use quarterdeck_runtime::random_hex;

use super::openapi::{Media, Operation};
use crate::error::ApiError;

const PAGE: &str = include_str!("../../web/docs.html");
const STYLE: &str = include_str!("../../web/docs.css");
const SCRIPT: &str = include_str!("../../web/docs.js");

pub(super) async fn get() -> Result<Response, ApiError> {
    let nonce =
        random_hex(16).ok_or_else(|| ApiError::internal("nonce not generated", &"no random numbers"))?;
    // Only the page's own script runs, and it reaches only this server.
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; \
         img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let headers = [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::REFERRER_POLICY, "no-referrer".to_owned()),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    let page = PAGE.replace("NONCE", &nonce).replace("/* STYLE */", STYLE).replace("/* SCRIPT */", SCRIPT);
    Ok((headers, Html(page)).into_response())
}

pub(super) fn describe() -> Operation {
    Operation::new("getDocs", "description", "The API description as a page").response(
        200,
        "The page.",
        vec![Media::html()],
    )
}
