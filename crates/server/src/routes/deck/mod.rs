//! `/api/deck/…`: the operators' API, one file per path.
//!
//! Every request needs the admin token or, where none is configured, must come from this machine. Changes are audited.

mod alarms;
mod audit;
mod blocks;
mod clients;
mod conversations;
mod feedback;
mod live;
mod log_level;
mod mcp;
mod nodes;
mod overview;
mod playground;
mod registry;
mod rollout;
mod series;
mod sessions;
mod tasks;
mod verify;
mod versions;

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

pub(super) use live::follow_own_events;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::at("/api/deck/overview").get(overview::get, overview::describe),
        Route::at("/api/deck/series").get(series::get, series::describe),
        Route::at("/api/deck/live").get(live::get, live::describe),
        Route::at("/api/deck/sessions").get(sessions::list, sessions::describe_list),
        Route::at("/api/deck/sessions/{id}")
            .get(sessions::get, sessions::describe)
            .delete(sessions::delete, sessions::describe_delete),
        Route::at("/api/deck/alarms").get(alarms::list, alarms::describe_list),
        Route::at("/api/deck/alarms/lift").post(alarms::lift, alarms::describe_lift),
        Route::at("/api/deck/log-level")
            .get(log_level::get, log_level::describe)
            .post(log_level::post, log_level::describe_post),
        Route::at("/api/deck/audit").get(audit::get, audit::describe),
        Route::at("/api/deck/audit/verify").post(verify::post, verify::describe),
        Route::at("/api/deck/registry").get(registry::get, registry::describe),
        Route::at("/api/deck/versions")
            .get(versions::list, versions::describe_list)
            .post(versions::post, versions::describe_post),
        Route::at("/api/deck/versions/{id}").delete(versions::delete, versions::describe_delete),
        Route::at("/api/deck/rollout").post(rollout::post, rollout::describe),
        Route::at("/api/deck/blocks").get(blocks::list, blocks::describe_list),
        Route::at("/api/deck/blocks/{id}").delete(blocks::delete, blocks::describe_delete),
        Route::at("/api/deck/mcp").get(mcp::list, mcp::describe),
        Route::at("/api/deck/nodes").get(nodes::list, nodes::describe),
        Route::at("/api/deck/tasks").get(tasks::list, tasks::describe_list),
        Route::at("/api/deck/tasks/{id}").delete(tasks::delete, tasks::describe_delete),
        Route::at("/api/deck/feedback").get(feedback::list, feedback::describe),
        Route::at("/api/deck/conversations").get(conversations::list, conversations::describe_list),
        Route::at("/api/deck/conversations/{id}").get(conversations::get, conversations::describe),
        Route::at("/api/deck/unanswered").get(conversations::unanswered, conversations::describe_unanswered),
        Route::at("/api/deck/unanswered/export").post(conversations::export, conversations::describe_export),
        Route::at("/api/deck/clients/erase").post(clients::erase, clients::describe_erase),
        Route::at("/api/deck/playground").post(playground::post, playground::describe),
    ]
}

/// Extracts an operator; refuses everyone else.
pub(super) struct Operator(Caller);

impl<S: Send + Sync> FromRequestParts<S> for Operator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        match parts.extensions.get::<Caller>() {
            Some(caller) if caller.is_operator => Ok(Self(caller.clone())),
            _ => {
                Err(ApiError::new(ErrorType::Auth, "Operators only: send the admin token as a bearer token, and not from a page of another origin.")
                    .with_status(StatusCode::FORBIDDEN))
            }
        }
    }
}

impl Operator {
    /// Writes the action to the audit log.
    fn record(&self, app: &App, action: &str, details: Value) {
        tracing::info!(action, address = %self.0.source.address, "operator action");
        if let Some(log) = &app.operations.audit {
            let by = format!("deck {}", self.0.source.address);
            log.feed.record_operator_action(action, &by, details, app.orchestrator.now());
        }
    }

    /// Writes the action to the audit log and waits until it is in the file: what cannot be recorded is not shown.
    async fn record_first(&self, app: &App, action: &str, details: Value) -> Result<(), ApiError> {
        let log = audit_log(app)?;
        self.record(app, action, details);
        let lost = blocking("audit log flush failed", move || {
            log.feed.flush();
            Ok(log.feed.lost())
        });
        match lost.await? {
            0 => Ok(()),
            _ => Err(ApiError::transient(
                "The audit log cannot be written, so nothing is shown. Check the disk.",
                10,
            )),
        }
    }
}

/// An operation for operators only.
fn operation(id: &str, summary: &str) -> Operation {
    Operation::new(id, "operation", summary).with("security", json!([{ "admin": [] }, {}]))
}

fn audit_log(app: &App) -> Result<AuditLogHandle, ApiError> {
    app.operations.audit.clone().ok_or_else(|| ApiError::not_found("This server keeps no audit log."))
}

/// Runs blocking work on a thread for it.
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

/// Searches the audit log, including everything recorded so far.
async fn search_audit(app: &App, log: AuditLogHandle, query: Search) -> Result<AuditMatches, ApiError> {
    let permit = app.admission.admit_audit_search()?;
    blocking("audit search failed", move || {
        // Held by the thread, which continues when the client has left.
        let _permit = permit;
        log.feed.flush();
        search(&log.path, &query).map_err(|error| error.to_string())
    })
    .await
}

fn store_error(error: &dyn std::fmt::Display) -> ApiError {
    ApiError::internal("store read failed", error)
}

/// JavaScript's `Number.MAX_SAFE_INTEGER`.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

fn check_number(name: &str, value: Option<u64>) -> Result<Option<u64>, ApiError> {
    match value {
        Some(number) if number > MAX_SAFE_INTEGER => {
            Err(ApiError::validation(format!("`{name}` is larger than {MAX_SAFE_INTEGER}.")))
        }
        value => Ok(value),
    }
}

fn check_id(id: &str) -> Result<(), ApiError> {
    let is_valid = (1..=128).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:@".contains(&byte));
    if is_valid { Ok(()) } else { Err(ApiError::not_found("Not found.")) }
}

type Shared = axum::extract::State<Arc<App>>;
