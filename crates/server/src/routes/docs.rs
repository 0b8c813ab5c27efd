//! `GET /docs`: a page that shows the description and tries it out. It is all here: nothing is loaded from elsewhere.

use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use quarterdeck_runtime::random_hex;
use serde_json::json;

use super::openapi::Operation;
use crate::error::ApiError;

const PAGE: &str = include_str!("../../web/docs.html");
const STYLE: &str = include_str!("../../web/docs.css");
const SCRIPT: &str = include_str!("../../web/docs.js");

pub(super) async fn get() -> Result<Response, ApiError> {
    let nonce =
        random_hex(16).ok_or_else(|| ApiError::internal("the page got no nonce", &"no random numbers"))?;
    // Only what we put into the page runs, and it reaches this server alone.
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

pub(super) fn described() -> Operation {
    let page = json!({ "text/html": { "schema": { "type": "string" } } });
    Operation::new("getDocs", "description", "This description as a page").gives(200, "The page.", page)
}
