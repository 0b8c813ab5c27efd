//! `/healthz` is the liveness probe, `/readyz` the readiness probe.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use quarterdeck_contracts::{Commit, Table};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::openapi::schemas::one_of;
use super::openapi::{Media, Operation};
use crate::app::App;
use crate::error::ErrorBody;

const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// The body of the liveness probe.
#[derive(JsonSchema)]
#[schemars(inline)]
#[expect(dead_code, reason = "only its schema is used")]
enum AliveShape {
    #[schemars(rename = "ok")]
    Ok,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Readiness {
    /// The server can take requests.
    ready: bool,
    /// The registry is loaded and locked.
    registry_locked: bool,
    /// A test row was written.
    store_writable: bool,
    /// The server is shutting down.
    draining: bool,
}

/// Not ready, or refused before the probe ran.
#[derive(JsonSchema)]
#[schemars(inline, untagged, transform = one_of)]
#[expect(dead_code, reason = "only its schema is used")]
enum NotReadyShape<'a> {
    Readiness(Readiness),
    Error(ErrorBody<'a>),
}

pub(super) async fn alive() -> &'static str {
    "ok"
}

pub(super) async fn ready(State(app): State<Arc<App>>) -> (StatusCode, Json<Readiness>) {
    let now = app.orchestrator.now_ms();
    let probe = Commit::default().put_until(Table::Rates, "readyz", json!({ "at": now }), Some(now + 60_000));
    let commit = tokio::time::timeout(STORE_TIMEOUT, app.orchestrator.store().commit(probe)).await;
    let store_writable = matches!(commit, Ok(Ok(())));
    let registry_locked = app.registry.is_locked();
    let draining = app.admission.is_draining();
    let ready = store_writable && registry_locked && !draining;
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(Readiness { ready, registry_locked, store_writable, draining }))
}

pub(super) fn describe_alive() -> Operation {
    let text = Media::new::<AliveShape>("text/plain").example("ok".into());
    Operation::new("getHealth", "operation", "Liveness probe").response(
        200,
        "The process is alive.",
        vec![text],
    )
}

pub(super) fn describe_ready() -> Operation {
    let ready = json!({ "ready": true, "registryLocked": true, "storeWritable": true, "draining": false });
    let not = json!({ "ready": false, "registryLocked": true, "storeWritable": false, "draining": false });
    Operation::new("getReadiness", "operation", "Readiness probe")
        .json_response::<Readiness>(200, "Ready.", Some(ready))
        .json_response::<NotReadyShape<'_>>(503, "Not ready.", Some(not))
}
