//! `/.well-known/oauth-protected-resource`: where MCP clients get tokens for `/mcp` (RFC 9728).

use std::sync::Arc;

use axum::Extension;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::Response;
use serde_json::{Value, json};

use super::mcp;
use crate::app::App;
use crate::caller::{Peer, is_encrypted};
use crate::error::ApiError;

/// For the server, and for the resource: clients try both.
pub(super) const PATHS: [&str; 2] =
    ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"];

pub(super) async fn get(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Result<Json<Value>, ApiError> {
    let issuer = app.mcp.as_ref().and_then(|_| app.identity.issuer());
    let (Some(issuer), Some(base)) = (issuer, base_url(&app, peer, &headers)) else {
        return Err(ApiError::not_found(
            "No issuer of tokens is configured. Use an API key, if you have one.",
        ));
    };
    Ok(Json(json!({
        "resource": format!("{base}{}", mcp::PATH),
        "resource_name": "Quarterdeck",
        "authorization_servers": [issuer],
        "bearer_methods_supported": ["header"],
    })))
}

/// Tells a client that was refused where it learns how to get a token.
pub(crate) fn point_to(app: &App, peer: Peer, uri: &Uri, request: &HeaderMap, response: &mut Response) {
    let is_refused = response.headers().contains_key(header::WWW_AUTHENTICATE);
    if !is_refused || uri.path() != mcp::PATH || app.identity.issuer().is_none() {
        return;
    }
    let Some(base) = base_url(app, peer, request) else { return };
    let error = if request.contains_key(header::AUTHORIZATION) { ", error=\"invalid_token\"" } else { "" };
    let challenge = format!("Bearer resource_metadata=\"{base}{}\"{error}", PATHS[1]);
    if let Ok(challenge) = HeaderValue::from_str(&challenge) {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
}

/// How the client reaches the server. Its host was checked by the guard.
pub(super) fn base_url(app: &App, peer: Peer, headers: &HeaderMap) -> Option<String> {
    let host = headers.get(header::HOST)?.to_str().ok()?;
    let scheme = if is_encrypted(app, peer.0, headers) { "https" } else { "http" };
    Some(format!("{scheme}://{host}"))
}
