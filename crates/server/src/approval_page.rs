//! The page on which a user approves a call of an MCP client that cannot ask. It has no script: what can be done on it is
//! a form.

use std::fmt::Write;

use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use quarterdeck_contracts::{ConfirmationAnswer, shown_arguments};
use quarterdeck_mcp_server::ApprovalView;
use quarterdeck_runtime::random_hex;

use crate::error::ApiError;
use crate::page_dress::escape;

const STYLE: &str = include_str!("../web/approval.css");

/// Proof that the page was shown to someone who may decide.
pub(crate) struct ApprovalProof {
    /// The client that decides; empty for a browser on this machine.
    pub(crate) client: String,
    pub(crate) signature: String,
}

/// What would be done, and the two ways to decide about it.
pub(crate) fn question(
    view: &ApprovalView,
    proof: &ApprovalProof,
    now_ms: u64,
) -> Result<Response, ApiError> {
    let request = &view.request;
    let mut body = format!("<h1>Approve this call?</h1><p>{}</p>", escape(&request.preview));
    // Writing to a string cannot fail.
    if let Some(reason) = &request.reason {
        let _ = write!(body, "<p>{}</p>", escape(reason));
    }
    let minutes = request.expires.saturating_sub(now_ms).div_ceil(60_000);
    let _ = write!(
        body,
        "<p><code>{}</code> would be run with exactly these arguments:</p><pre>{}</pre>\
         <p>This can be decided for {minutes} min. Approve it only if you asked for it.</p>\
         <form method=\"post\"><input type=\"hidden\" name=\"client\" value=\"{}\">\
         <input type=\"hidden\" name=\"proof\" value=\"{}\">\
         <button name=\"decision\" value=\"deny\">Deny</button>\
         <button name=\"decision\" value=\"approve\">Approve</button></form>",
        escape(&request.tool),
        escape(&shown_arguments(&request.args)),
        escape(&proof.client),
        escape(&proof.signature),
    );
    page(StatusCode::OK, &body)
}

/// What has been decided.
pub(crate) fn decided(decision: ConfirmationAnswer) -> Result<Response, ApiError> {
    let text = match decision {
        ConfirmationAnswer::Approve => {
            "<h1>Approved</h1><p>Go back to your assistant and let it make the call again. It then runs, once.</p>"
        }
        ConfirmationAnswer::Deny => "<h1>Denied</h1><p>The call will not run. You can close this page.</p>",
    };
    page(StatusCode::OK, text)
}

/// Asks who wants to decide. Nothing of the call is shown before that.
pub(crate) fn sign_in(message: &str, takes_keys: bool) -> Result<Response, ApiError> {
    let mut body = format!("<h1>Who are you?</h1><p>{}</p>", escape(message));
    if takes_keys {
        body.push_str(
            "<form method=\"post\"><label>The key or token that your MCP client uses \
             <input type=\"password\" name=\"key\" autocomplete=\"off\" required></label>\
             <button name=\"decision\" value=\"show\">Show the call</button></form>",
        );
    }
    page(StatusCode::FORBIDDEN, &body)
}

pub(crate) fn not_found(message: &str) -> Result<Response, ApiError> {
    page(StatusCode::NOT_FOUND, &format!("<h1>Nothing to approve</h1><p>{}</p>", escape(message)))
}

fn page(status: StatusCode, body: &str) -> Result<Response, ApiError> {
    let nonce =
        random_hex(16).ok_or_else(|| ApiError::internal("nonce not generated", &"no random numbers"))?;
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; img-src data:; base-uri 'none'; form-action 'self'; \
         frame-ancestors 'none'"
    );
    let headers = [
        (header::CONTENT_SECURITY_POLICY, policy),
        // With `no-referrer`, a form would come without its origin.
        (header::REFERRER_POLICY, "same-origin".to_owned()),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"robots\" content=\"noindex\"><title>Quarterdeck: approval</title>\
         <link rel=\"icon\" href=\"data:,\"><style nonce=\"{nonce}\">{STYLE}</style></head>\
         <body><main>{body}</main></body></html>"
    );
    Ok((status, headers, Html(html)).into_response())
}
