//! `POST /api/deck/audit/verify`: verifies the chain of the audit log.

use axum::Json;
use axum::extract::State;
use quarterdeck_runtime::audit::{Verification, log_size, verify_sealed};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{Operator, Shared, audit_log, blocking, operation};
use crate::deck::AuditLogHandle;
use crate::error::ApiError;
use crate::routes::openapi::Operation;

/// A larger log would keep the disk busy for a page.
const MAX_LOG_BYTES: u64 = 256 << 20;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(super) struct AuditVerification {
    /// Null if the log is too large to verify here.
    is_whole: Option<bool>,
    lines: Option<u64>,
    /// Lines after the last one confirmed by the store.
    unconfirmed: Option<u64>,
    /// On the disk, closed segments included.
    bytes: u64,
    /// Segments before the newest one.
    closed_segments: Option<u64>,
    /// Lines that retention has cut from the beginning.
    cut_lines: Option<u64>,
    /// What is wrong, and where.
    fault: Option<String>,
}

pub(super) async fn post(State(app): Shared, _: Operator) -> Result<Json<AuditVerification>, ApiError> {
    let log = audit_log(&app)?;
    let Ok(_guard) = app.deck.verifying.try_lock() else {
        return Err(ApiError::rate_limited("The audit log is being verified. Try again later.", 5));
    };
    let path = log.path.clone();
    let size = blocking("audit log not readable", move || Ok(log_size(&path).unwrap_or(0))).await?;
    if size > MAX_LOG_BYTES {
        let fault =
            "The audit log is too large to verify here. Run `quarterdeck audit verify` on the server.";
        return Ok(Json(AuditVerification {
            is_whole: None,
            lines: None,
            unconfirmed: None,
            bytes: size,
            closed_segments: None,
            cut_lines: None,
            fault: Some(fault.to_owned()),
        }));
    }
    let found = run(&app, &log).await?;
    Ok(Json(AuditVerification {
        is_whole: Some(found.fault.is_none()),
        lines: Some(found.lines),
        unconfirmed: Some(found.unconfirmed),
        bytes: size,
        closed_segments: Some(found.closed_segments),
        cut_lines: Some(found.cut.map_or(0, |cut| cut.lines)),
        fault: found.fault,
    }))
}

async fn run(app: &crate::app::App, log: &AuditLogHandle) -> Result<Verification, ApiError> {
    let (log, store) = (log.clone(), app.orchestrator.store().clone());
    let runtime = tokio::runtime::Handle::current();
    blocking("audit verification failed", move || {
        log.feed.flush();
        runtime.block_on(verify_sealed(&log.path, &log.node, &*store, log.seal_file.as_deref()))
    })
    .await
}

pub(super) fn describe() -> Operation {
    let example = json!({
        "isWhole": true, "lines": 4711, "unconfirmed": 0, "bytes": 2_097_152, "closedSegments": 3, "cutLines": 0,
        "fault": null,
    });
    operation("verifyAudit", "Verify the audit log")
        .description(
            "Reads the whole chain, compares its head with the store's, and reports missing lines, as `quarterdeck \
             audit verify` does. One at a time.",
        )
        .json_response::<AuditVerification>(200, "The result.", Some(example))
        .errors(&[404])
}
