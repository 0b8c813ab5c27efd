//! `/api/deck/…`: what operators see and do, one file for each path.
//!
//! Without the admin token, or from this machine where there is none, everything here is refused. What an operator
//! changes is on the record.

mod audit;
mod blocks;
mod clients;
mod live;
mod overview;
mod playground;
mod quarantines;
mod registry;
mod series;
mod sessions;
mod verify;

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use quarterdeck_contracts::ErrorType;
use quarterdeck_runtime::audit::{AuditMatches, Search, search};
use serde_json::{Value, json};

use super::openapi::Operation;
use super::route::Route;
use crate::app::App;
use crate::caller::Caller;
use crate::deck::AuditLogHandle;
use crate::error::ApiError;

/// Every path of the deck.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::at("/api/deck/overview").get(overview::get, overview::described()),
        Route::at("/api/deck/series").get(series::get, series::described()),
        Route::at("/api/deck/live").get(live::get, live::described()),
        Route::at("/api/deck/sessions").get(sessions::list, sessions::list_described()),
        Route::at("/api/deck/sessions/{id}")
            .get(sessions::get, sessions::described())
            .delete(sessions::delete, sessions::delete_described()),
        Route::at("/api/deck/audit").get(audit::get, audit::described()),
        Route::at("/api/deck/audit/verify").post(verify::post, verify::described()),
        Route::at("/api/deck/registry").get(registry::get, registry::described()),
        Route::at("/api/deck/blocks").get(blocks::list, blocks::list_described()),
        Route::at("/api/deck/blocks/{id}").delete(blocks::delete, blocks::delete_described()),
        Route::at("/api/deck/quarantines").get(quarantines::list, quarantines::list_described()),
        Route::at("/api/deck/quarantines/{id}").delete(quarantines::delete, quarantines::delete_described()),
        Route::at("/api/deck/clients/erase").post(clients::erase, clients::erase_described()),
        Route::at("/api/deck/playground").post(playground::post, playground::described()),
    ]
}

/// Bodies of the deck, for the shared schemas.
pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("AuditLine", audit::line_schema()),
        ("EraseRequest", clients::body_schema()),
        ("Gate", playground::gate_schema()),
        ("LiveEvent", live::event_schema()),
        ("PlaygroundCall", playground::body_schema()),
        ("SessionSummary", sessions::summary_schema()),
    ]
}

/// An operator: nobody else gets past this.
pub(super) struct Operator(Caller);

impl<S: Send + Sync> FromRequestParts<S> for Operator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        match parts.extensions.get::<Caller>() {
            Some(caller) if caller.is_operator => Ok(Self(caller.clone())),
            _ => Err(ApiError::new(
                ErrorType::Auth,
                "This is for operators: send the admin token as a bearer token.",
            )
            .with_status(StatusCode::FORBIDDEN)),
        }
    }
}

impl Operator {
    /// Puts on the record what they did.
    fn did(&self, app: &App, action: &str, details: Value) {
        tracing::info!(action, address = %self.0.source.address, "an operator has done something");
        if let Some(trail) = &app.operations.audit {
            let by = format!("deck {}", self.0.source.address);
            trail.feed.operator_did(action, &by, details, app.orchestrator.now());
        }
    }
}

/// An operation that only operators may use.
fn operation(id: &str, summary: &str) -> Operation {
    Operation::new(id, "operation", summary).with("security", json!([{ "admin": [] }, {}]))
}

/// The trail, or the word that none is kept.
fn trail(app: &App) -> Result<AuditLogHandle, ApiError> {
    app.operations.audit.clone().ok_or_else(|| ApiError::not_found("This server keeps no audit trail."))
}

/// Does something that blocks, on a thread that may.
async fn blocking<T: Send + 'static>(
    what: &str,
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, ApiError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(ApiError::internal(what, &error)),
        Err(error) => Err(ApiError::internal(what, &error)),
    }
}

/// Searches the trail, with everything in it that was recorded so far.
async fn searched(app: &App, trail: AuditLogHandle, wanted: Search) -> Result<AuditMatches, ApiError> {
    let place = app.admit_search()?;
    blocking("the audit trail could not be searched", move || {
        // Taken along: the thread goes on when whoever asked is gone.
        let _place = place;
        trail.feed.flush();
        search(&trail.path, &wanted).map_err(|error| error.to_string())
    })
    .await
}

fn stored(error: &dyn std::fmt::Display) -> ApiError {
    ApiError::internal("the store could not be asked", error)
}

/// The largest number that JavaScript can tell from the next one.
const LARGEST: u64 = (1 << 53) - 1;

/// A whole number from a query, if it is one that every client can write.
fn number(name: &str, given: Option<u64>) -> Result<Option<u64>, ApiError> {
    match given {
        Some(number) if number > LARGEST => {
            Err(ApiError::validation(format!("`{name}` is larger than {LARGEST}.")))
        }
        given => Ok(given),
    }
}

fn number_schema() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": LARGEST })
}

/// Whether something can be an id at all.
fn known_id(id: &str) -> Result<(), ApiError> {
    let is_one = (1..=128).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:@".contains(&byte));
    if is_one { Ok(()) } else { Err(ApiError::not_found("There is nothing of that id.")) }
}

type Shared = axum::extract::State<Arc<App>>;
