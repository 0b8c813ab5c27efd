//! `/healthz` says that the process is alive, `/readyz` that it can work.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use quarterdeck_contracts::{Commit, Table};
use serde_json::{Value, json};

use super::openapi::{Operation, reference};
use crate::app::App;

/// How long the store may take to write a row.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) async fn alive() -> &'static str {
    "ok"
}

pub(super) async fn ready(State(app): State<Arc<App>>) -> (StatusCode, Json<Value>) {
    let now = app.orchestrator.now_ms();
    let probe = Commit::default().put_until(Table::Rates, "readyz", json!({ "at": now }), Some(now + 60_000));
    let written = tokio::time::timeout(PATIENCE, app.orchestrator.store().commit(probe)).await;
    let store = matches!(written, Ok(Ok(())));
    let registry = app.registry.is_locked();
    let is_ready = store && registry && !app.is_draining();
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = json!({
        "ready": is_ready, "registryLocked": registry, "storeWritable": store, "draining": app.is_draining(),
    });
    (status, Json(body))
}

pub(super) fn alive_described() -> Operation {
    let text = json!({ "text/plain": { "schema": { "const": "ok" }, "example": "ok" } });
    Operation::new("getHealth", "operation", "Whether the process is alive").gives(200, "It is.", text)
}

pub(super) fn ready_described() -> Operation {
    let flag = |about: &str| json!({ "type": "boolean", "description": about });
    let schema = json!({
        "type": "object", "required": ["ready", "registryLocked", "storeWritable", "draining"],
        "properties": {
            "ready": flag("All of it."), "registryLocked": flag("The tools cannot change any more."),
            "storeWritable": flag("A row was written just now."), "draining": flag("The server is about to stop."),
        },
    });
    let ready = json!({ "ready": true, "registryLocked": true, "storeWritable": true, "draining": false });
    let not = json!({ "ready": false, "registryLocked": true, "storeWritable": false, "draining": false });
    let either = json!({ "oneOf": [schema, reference("schemas", "Error")] });
    Operation::new("getReadiness", "operation", "Whether the server can work")
        .gives_json(200, "It can.", schema, Some(ready))
        .gives_json(503, "It cannot, or not any more.", either, Some(not))
}
