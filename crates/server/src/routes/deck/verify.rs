//! `POST /api/deck/audit/verify`: whether the trail is whole.

use axum::Json;
use axum::extract::State;
use quarterdeck_runtime::audit::{Verification, verify};
use serde_json::{Value, json};

use super::{Operator, Shared, blocking, operation, trail};
use crate::deck::AuditLogHandle;
use crate::error::ApiError;
use crate::routes::openapi::Operation;

/// The longest trail that is verified here. A longer one would keep a disk busy for a page.
const LARGEST: u64 = 256 << 20;

pub(super) async fn post(State(app): Shared, _: Operator) -> Result<Json<Value>, ApiError> {
    let trail = trail(&app)?;
    let Ok(_alone) = app.verifying.try_lock() else {
        return Err(ApiError::rate_limited("The trail is being verified. Please wait for that.", 5));
    };
    let path = trail.path.clone();
    let size = blocking("the audit trail could not be looked at", move || {
        Ok(std::fs::metadata(&path).map_or(0, |file| file.len()))
    })
    .await?;
    if size > LARGEST {
        return Ok(Json(json!({
            "isWhole": null, "lines": null, "unconfirmed": null, "bytes": size,
            "fault": "The trail is too long to be verified here. Run `quarterdeck audit verify` beside the server.",
        })));
    }
    let found = look(&app, &trail).await?;
    Ok(Json(json!({
        "isWhole": found.fault.is_none(), "lines": found.lines, "unconfirmed": found.unconfirmed, "bytes": size,
        "fault": found.fault,
    })))
}

async fn look(app: &crate::app::App, trail: &AuditLogHandle) -> Result<Verification, ApiError> {
    let (trail, store) = (trail.clone(), app.orchestrator.store().clone());
    let runtime = tokio::runtime::Handle::current();
    blocking("the audit trail could not be verified", move || {
        trail.feed.flush();
        runtime.block_on(verify(&trail.path, &trail.node, &*store))
    })
    .await
}

pub(super) fn described() -> Operation {
    let count = json!({ "type": ["integer", "null"], "minimum": 0 });
    let schema = json!({
        "type": "object", "required": ["isWhole", "lines", "unconfirmed", "bytes", "fault"],
        "additionalProperties": false,
        "properties": {
            "isWhole": { "type": ["boolean", "null"], "description": "Null when it is too long to be verified here." },
            "lines": count, "bytes": { "type": "integer", "minimum": 0 },
            "unconfirmed": { "type": ["integer", "null"], "description": "Lines after the last one that the store knows." },
            "fault": { "type": ["string", "null"], "description": "What is wrong, and where." },
        },
    });
    let example =
        json!({ "isWhole": true, "lines": 4711, "unconfirmed": 0, "bytes": 2_097_152, "fault": null });
    operation("verifyAudit", "Whether the audit trail is whole")
        .about(
            "Reads the whole chain, compares its end with the one in the store, and tells of lines that were missing \
             when it went on: what `quarterdeck audit verify` says. One at a time.",
        )
        .gives_json(200, "What was found.", schema, Some(example))
        .refuses(&[404])
}
