//! `POST /api/deck/audit/verify`: verifies the chain of the audit log.

use axum::Json;
use axum::extract::State;
use quarterdeck_runtime::audit::{Verification, verify};
use serde_json::{Value, json};

use super::{Operator, Shared, audit_log, blocking, operation};
use crate::deck::AuditLogHandle;
use crate::error::ApiError;
use crate::routes::openapi::Operation;

/// A larger log would keep the disk busy for a page.
const MAX_LOG_BYTES: u64 = 256 << 20;

pub(super) async fn post(State(app): Shared, _: Operator) -> Result<Json<Value>, ApiError> {
    let log = audit_log(&app)?;
    let Ok(_guard) = app.verifying.try_lock() else {
        return Err(ApiError::rate_limited("The audit log is being verified. Try again later.", 5));
    };
    let path = log.path.clone();
    let size =
        blocking("audit log not readable", move || Ok(std::fs::metadata(&path).map_or(0, |file| file.len())))
            .await?;
    if size > MAX_LOG_BYTES {
        return Ok(Json(json!({
            "isWhole": null, "lines": null, "unconfirmed": null, "bytes": size,
            "fault": "The audit log is too large to verify here. Run `quarterdeck audit verify` on the server.",
        })));
    }
    let found = run(&app, &log).await?;
    Ok(Json(json!({
        "isWhole": found.fault.is_none(), "lines": found.lines, "unconfirmed": found.unconfirmed, "bytes": size,
        "fault": found.fault,
    })))
}

async fn run(app: &crate::app::App, log: &AuditLogHandle) -> Result<Verification, ApiError> {
    let (log, store) = (log.clone(), app.orchestrator.store().clone());
    let runtime = tokio::runtime::Handle::current();
    blocking("audit verification failed", move || {
        log.feed.flush();
        runtime.block_on(verify(&log.path, &log.node, &*store))
    })
    .await
}

pub(super) fn describe() -> Operation {
    let count = json!({ "type": ["integer", "null"], "minimum": 0 });
    let schema = json!({
        "type": "object", "required": ["isWhole", "lines", "unconfirmed", "bytes", "fault"],
        "additionalProperties": false,
        "properties": {
            "isWhole": { "type": ["boolean", "null"], "description": "Null if the log is too large to verify here." },
            "lines": count, "bytes": { "type": "integer", "minimum": 0 },
            "unconfirmed": { "type": ["integer", "null"], "description": "Lines after the last one confirmed by the store." },
            "fault": { "type": ["string", "null"], "description": "What is wrong, and where." },
        },
    });
    let example =
        json!({ "isWhole": true, "lines": 4711, "unconfirmed": 0, "bytes": 2_097_152, "fault": null });
    operation("verifyAudit", "Verify the audit log")
        .description(
            "Reads the whole chain, compares its head with the store's, and reports missing lines, as `quarterdeck audit \
             verify` does. One at a time.",
        )
        .json_response(200, "The result.", schema, Some(example))
        .errors(&[404])
}
