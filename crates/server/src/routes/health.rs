//! `/healthz` is the liveness probe, `/readyz` the readiness probe.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use quarterdeck_contracts::{Commit, Table};
use serde_json::{Value, json};

use super::openapi::{Operation, reference};
use crate::app::App;

const STORE_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) async fn alive() -> &'static str {
    "ok"
}

pub(super) async fn ready(State(app): State<Arc<App>>) -> (StatusCode, Json<Value>) {
    let now = app.orchestrator.now_ms();
    let probe = Commit::default().put_until(Table::Rates, "readyz", json!({ "at": now }), Some(now + 60_000));
    let commit = tokio::time::timeout(STORE_TIMEOUT, app.orchestrator.store().commit(probe)).await;
    let store = matches!(commit, Ok(Ok(())));
    let registry = app.registry.is_locked();
    let is_ready = store && registry && !app.admission.is_draining();
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = json!({
        "ready": is_ready, "registryLocked": registry, "storeWritable": store, "draining": app.admission.is_draining(),
    });
    (status, Json(body))
}

pub(super) fn describe_alive() -> Operation {
    let text = json!({ "text/plain": { "schema": { "const": "ok" }, "example": "ok" } });
    Operation::new("getHealth", "operation", "Liveness probe").response(200, "The process is alive.", text)
}

pub(super) fn describe_ready() -> Operation {
    let flag = |about: &str| json!({ "type": "boolean", "description": about });
    let schema = json!({
        "type": "object", "required": ["ready", "registryLocked", "storeWritable", "draining"],
        "properties": {
            "ready": flag("The server can take requests."), "registryLocked": flag("The registry is loaded and locked."),
            "storeWritable": flag("A test row was written."), "draining": flag("The server is shutting down."),
        },
    });
    let ready = json!({ "ready": true, "registryLocked": true, "storeWritable": true, "draining": false });
    let not = json!({ "ready": false, "registryLocked": true, "storeWritable": false, "draining": false });
    let either = json!({ "oneOf": [schema, reference("schemas", "Error")] });
    Operation::new("getReadiness", "operation", "Readiness probe")
        .json_response(200, "Ready.", schema, Some(ready))
        .json_response(503, "Not ready.", either, Some(not))
}
