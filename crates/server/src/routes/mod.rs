//! Every path, one file each.

mod chat;
mod completions;
mod confirmations;
mod health;
mod me;
mod metrics;
mod models;
pub(crate) mod openapi;
mod sessions;
mod tools;

use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use quarterdeck_contracts::ErrorType;

use crate::app::App;
use crate::error::ApiError;
use crate::guard::guard;

/// The whole API behind its guard.
pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/api/chat", post(chat::post))
        .route("/api/chat/{id}/stream", get(chat::resume))
        .route("/api/confirmations", post(confirmations::post))
        .route("/api/sessions/{id}", get(sessions::get).delete(sessions::delete))
        .route("/api/tools", get(tools::list))
        .route("/api/tools/{id}", get(tools::get))
        .route("/api/me", get(me::get))
        .route("/v1/chat/completions", post(completions::post))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{id}", get(models::get))
        .route("/metrics", get(metrics::get))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/openapi.json", get(openapi::get))
        .route("/docs", get(openapi::docs))
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .layer(from_fn_with_state(app.clone(), guard))
        .with_state(app)
}

async fn not_found(uri: Uri) -> Response {
    let error = ApiError::not_found("There is nothing here. `/openapi.json` describes what there is.");
    in_form(&uri, error)
}

async fn not_allowed(uri: Uri) -> Response {
    let error = ApiError::new(ErrorType::Validation, "This path does not take that method.");
    in_form(&uri, error.with_status(StatusCode::METHOD_NOT_ALLOWED))
}

/// Clients of the OpenAI API expect its errors.
fn in_form(uri: &Uri, error: ApiError) -> Response {
    if uri.path().starts_with("/v1/") { error.openai() } else { error.into_response() }
}
