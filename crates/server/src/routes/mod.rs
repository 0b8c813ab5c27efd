//! Every path, one file each.

mod chat;
mod completions;
mod confirmations;
mod deck;
mod docs;
mod health;
mod me;
mod metrics;
mod models;
pub(crate) mod openapi;
mod page;
mod route;
mod sessions;
mod ticket;
mod tools;
mod voice;

use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use quarterdeck_contracts::ErrorType;

use crate::app::App;
use crate::error::ApiError;
use crate::guard::guard;
use route::Route;

/// Every path, with what answers and how that is described.
fn table() -> Vec<Route> {
    let mut routes = vec![
        Route::at("/api/chat").post(chat::post, chat::described()),
        Route::at("/api/chat/{id}/stream").get(chat::resume, chat::resume_described()),
        Route::at("/api/confirmations").post(confirmations::post, confirmations::described()),
        Route::at("/api/sessions/{id}")
            .get(sessions::get, sessions::described())
            .delete(sessions::delete, sessions::delete_described()),
        Route::at("/api/tools").get(tools::list, tools::list_described()),
        Route::at("/api/tools/{id}").get(tools::get, tools::described()),
        Route::at("/api/me").get(me::get, me::described()),
        Route::at("/api/voice/ticket").post(ticket::post, ticket::described()),
        Route::at("/voice").get(voice::get, voice::described()),
        Route::at("/v1/chat/completions").post(completions::post, completions::described()),
        Route::at("/v1/models").get(models::list, models::list_described()),
        Route::at("/v1/models/{id}").get(models::get, models::described()),
        Route::at("/metrics").get(metrics::get, metrics::described()),
        Route::at("/healthz").get(health::alive, health::alive_described()),
        Route::at("/readyz").get(health::ready, health::ready_described()),
        Route::at("/openapi.json").get(openapi::get, openapi::described()),
        Route::at("/").get(page::get, page::described()),
        Route::at("/deck").get(page::deck, page::deck_described()),
        Route::at("/docs").get(docs::get, docs::described()),
    ];
    routes.extend(deck::routes());
    routes
}

/// The whole API behind its guard.
pub(crate) fn router(app: Arc<App>) -> Router {
    let routes = table();
    let router =
        routes.into_iter().fold(Router::new(), |router, route| router.route(route.path, route.answers));
    router
        // The files of the pages are no part of the API, and are not described.
        .route(page::FILES_PATH, axum::routing::get(page::file))
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .layer(from_fn_with_state(app.clone(), guard))
        .with_state(app)
}

async fn not_found(uri: Uri) -> Response {
    let error = ApiError::not_found("There is nothing here. `/openapi.json` describes what there is.");
    error.in_form_of(&uri)
}

async fn not_allowed(uri: Uri) -> Response {
    let error = ApiError::new(ErrorType::Validation, "This path does not take that method.");
    error.with_status(StatusCode::METHOD_NOT_ALLOWED).in_form_of(&uri)
}
