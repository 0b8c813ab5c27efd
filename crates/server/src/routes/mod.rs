//! The routes, one file per path.

pub(crate) mod approvals;
mod chat;
mod completions;
mod confirmations;
mod deck;
mod docs;
mod embed;
mod feedback;
mod files;
mod health;
mod mcp;
mod me;
mod metrics;
mod models;
mod nodes;
pub(crate) mod openapi;
mod page;
mod page_settings;
pub(crate) mod resource_metadata;
mod route;
mod session_list;
mod sessions;
mod tasks;
mod ticket;
mod tools;
mod voice;
mod watch;

use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use quarterdeck_contracts::ErrorType;

use crate::app::App;
use crate::error::ApiError;
use crate::guard::guard;
pub(crate) use metrics::prometheus_text;
use route::Route;

/// Every path with its handlers and descriptions.
fn table() -> Vec<Route> {
    let mut routes = vec![
        Route::at("/api/chat").post(chat::post, chat::describe),
        Route::at("/api/chat/{id}/stream").get(chat::resume, chat::describe_resume),
        Route::at("/api/confirmations").post(confirmations::post, confirmations::describe),
        Route::at("/api/feedback").post(feedback::post, feedback::describe),
        Route::at("/api/sessions").get(session_list::get, session_list::describe),
        Route::at("/api/sessions/{id}")
            .get(sessions::get, sessions::describe)
            .delete(sessions::delete, sessions::describe_delete),
        Route::at("/files/{id}").get(files::get, files::describe),
        Route::at("/api/tasks").get(tasks::list, tasks::describe_list),
        Route::at("/api/tasks/{id}")
            .get(tasks::get, tasks::describe)
            .delete(tasks::delete, tasks::describe_delete),
        Route::at("/api/tools").get(tools::list, tools::describe_list),
        Route::at("/api/tools/{id}").get(tools::get, tools::describe),
        Route::at("/api/me").get(me::get, me::describe),
        Route::at("/api/page").get(page_settings::get, page_settings::describe),
        Route::at("/api/page/logo").get(page_settings::logo, page_settings::describe_logo),
        Route::at("/api/voice/ticket").post(ticket::post, ticket::describe),
        Route::at("/api/watch").get(watch::get, watch::describe),
        Route::at("/voice").get(voice::get, voice::describe),
        Route::at("/v1/chat/completions").post(completions::post, completions::describe),
        Route::at("/v1/models").get(models::list, models::describe_list),
        Route::at("/v1/models/{id}").get(models::get, models::describe),
        Route::at("/metrics").get(metrics::get, metrics::describe),
        Route::at("/healthz").get(health::alive, health::describe_alive),
        Route::at("/readyz").get(health::ready, health::describe_ready),
        Route::at("/openapi.json").get(openapi::get, openapi::describe),
        Route::at("/").get(page::get, page::describe),
        Route::at("/deck").get(page::deck, page::describe_deck),
        Route::at("/embed.js").get(embed::get, embed::describe),
        Route::at("/docs").get(docs::get, docs::describe),
    ];
    routes.extend(deck::routes());
    routes
}

/// All routes behind the guard.
pub(crate) fn router(app: Arc<App>) -> Router {
    let routes = table();
    let router =
        routes.into_iter().fold(Router::new(), |router, route| router.route(route.path, route.handlers));
    router
        // The pages' files are not part of the API description.
        .route(page::FILES_PATH, axum::routing::get(page::file))
        // A page for users, which takes forms.
        .route(approvals::PATH, axum::routing::get(approvals::get).post(approvals::post))
        .route(approvals::NODE_PATH, axum::routing::get(approvals::get_at).post(approvals::post_at))
        // It describes itself, by the protocol's own means.
        .route(mcp::PATH, axum::routing::any(mcp::serve))
        .route(resource_metadata::PATHS[0], axum::routing::get(resource_metadata::get))
        .route(resource_metadata::PATHS[1], axum::routing::get(resource_metadata::get))
        // No client can call it.
        .merge(nodes::routes())
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .layer(from_fn_with_state(app.clone(), guard))
        .with_state(app)
}

async fn not_found(uri: Uri) -> Response {
    let error = ApiError::not_found("Not found. See `/openapi.json` for the API.");
    error.in_form_of(&uri)
}

async fn not_allowed(uri: Uri) -> Response {
    let error = ApiError::new(ErrorType::Validation, "Method not allowed on this path.");
    error.with_status(StatusCode::METHOD_NOT_ALLOWED).in_form_of(&uri)
}
