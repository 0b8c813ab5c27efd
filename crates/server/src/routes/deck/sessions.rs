//! `/api/deck/sessions`: all sessions, the timeline of one, and ending it.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use quarterdeck_contracts::{CommitError, Mode};
use quarterdeck_runtime::audit::{AuditMatches, Filter, Search};
use quarterdeck_runtime::{PendingEnd, end_stored_session, list_recent_sessions, session};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Operator, Shared, check_id, operation, search_audit, store_error};
use crate::app::App;
use crate::error::ApiError;
use crate::input::{Id, QueryParams};
use crate::routes::openapi::{Operation, reference};

const MAX_SESSIONS: usize = 200;
/// Scanned per request.
const MAX_SCANNED_SESSIONS: usize = 20_000;
const MAX_TIMELINE_LINES: usize = 500;
/// Scanned for a timeline.
const MAX_SCANNED_BYTES: u64 = 64 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionsQuery {
    client: Option<String>,
    mode: Option<Mode>,
    active: Option<bool>,
    limit: Option<usize>,
}

pub(super) async fn list(
    State(app): Shared,
    _: Operator,
    QueryParams(query): QueryParams<SessionsQuery>,
) -> Result<Json<Value>, ApiError> {
    let limit = query.limit.unwrap_or(50);
    if !(1..=MAX_SESSIONS).contains(&limit) {
        return Err(ApiError::validation(format!("`limit` must be between 1 and {MAX_SESSIONS}.")));
    }
    let client = query.client.filter(|client| !client.is_empty());
    // Recent changes must be in the store before it is read.
    app.orchestrator.save_all();
    let recent = list_recent_sessions(&**app.orchestrator.store(), limit, MAX_SCANNED_SESSIONS, |session| {
        client.as_deref().is_none_or(|client| session.client_id == client)
            && query.mode.is_none_or(|mode| session.mode == mode)
            && query.active.is_none_or(|active| session.is_active == active)
    });
    let recent = recent.await.map_err(|error| store_error(&error))?;
    Ok(Json(json!({
        "sessions": recent.sessions, "matching": recent.wanted, "lookedAt": recent.seen,
        "isComplete": recent.is_complete,
    })))
}

pub(super) async fn get(State(app): Shared, _: Operator, Id(id): Id) -> Result<Json<Value>, ApiError> {
    check_id(&id)?;
    app.orchestrator.save_all();
    let found = session(&**app.orchestrator.store(), &id).await.map_err(|error| store_error(&error))?;
    let Some(summary) = found else { return Err(not_found()) };
    let state = app.orchestrator.find(&id).map(|session| json!(session.state()));
    let AuditMatches { mut lines, next, .. } = timeline(&app, &id, summary.created_ms).await?;
    lines.reverse();
    Ok(Json(json!({
        "session": summary, "state": state, "timeline": lines, "isComplete": next.is_none(),
        "isKept": app.operations.audit.is_some(),
    })))
}

/// The lines of a session, newest first; empty without an audit log.
async fn timeline(app: &App, id: &str, since_ms: u64) -> Result<AuditMatches, ApiError> {
    let Some(log) = app.operations.audit.clone() else { return Ok(AuditMatches::default()) };
    let since = Timestamp::from_millisecond(since_ms as i64).ok().map(|time| format!("{time:.3}"));
    let filter = Filter { session: Some(id.to_owned()), since, ..Filter::default() };
    let query =
        Search { filter, max_lines: MAX_TIMELINE_LINES, max_bytes: MAX_SCANNED_BYTES, ..Search::default() };
    search_audit(app, log, query).await
}

pub(super) async fn delete(
    State(app): Shared,
    operator: Operator,
    Id(id): Id,
) -> Result<StatusCode, ApiError> {
    check_id(&id)?;
    if !end(&app, &id).await? {
        return Err(not_found());
    }
    operator.record(&app, "end_session", json!({ "sessionId": id }));
    Ok(StatusCode::NO_CONTENT)
}

/// Ends a session in memory or in the store; `false` if there is no active one.
pub(super) async fn end(app: &App, id: &str) -> Result<bool, ApiError> {
    // A client may resume a session just when it is ended in the store.
    for _ in 0..3 {
        if let Some(session) = app.orchestrator.find(id) {
            let was_active = session.state().is_active;
            session.end(PendingEnd::with_reason("ended_by_operator")).await;
            return Ok(was_active);
        }
        match end_stored_session(&**app.orchestrator.store(), id).await {
            Ok(ended) => return Ok(ended),
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(store_error(&error)),
        }
    }
    Err(ApiError::transient("The session is in use. Try again.", 1))
}

fn not_found() -> ApiError {
    ApiError::not_found("Session not found, or ended.")
}

pub(super) fn describe_list() -> Operation {
    let schema = json!({
        "type": "object", "required": ["sessions", "matching", "lookedAt", "isComplete"],
        "properties": {
            "sessions": { "type": "array", "items": reference("schemas", "SessionSummary") },
            "matching": {
                "type": "integer", "description": "Matches among the scanned sessions, also beyond the limit.",
            },
            "lookedAt": { "type": "integer", "description": "Sessions scanned." },
            "isComplete": { "type": "boolean", "description": "Whether all matches are included." },
        },
    });
    let example =
        json!({ "sessions": [summary_example()], "matching": 1, "lookedAt": 1, "isComplete": true });
    operation("listSessions", "List sessions, latest first")
        .optional("query", "client", json!({ "type": "string" }), "The client.", "c_1")
        .optional("query", "mode", json!({ "enum": ["text", "voice"] }), "The mode.", "text")
        .optional("query", "active", json!({ "type": "boolean" }), "Whether it is open.", "true")
        .optional(
            "query",
            "limit",
            json!({ "type": "integer", "minimum": 1, "maximum": MAX_SESSIONS }),
            "Maximum sessions.",
            "50",
        )
        .json_response(200, "The sessions.", schema, Some(example))
        .errors(&[400])
}

pub(super) fn describe() -> Operation {
    let schema = json!({
        "type": "object", "required": ["session", "state", "timeline", "isComplete", "isKept"],
        "properties": {
            "session": reference("schemas", "SessionSummary"),
            "state": { "type": ["object", "null"], "description": "The state, if it is in memory." },
            "timeline": {
                "type": "array", "items": reference("schemas", "AuditLine"),
                "description": "Calls, state changes and confirmations, oldest first, with turn numbers.",
            },
            "isComplete": { "type": "boolean", "description": "Whether the start is included." },
            "isKept": { "type": "boolean", "description": "Whether an audit log is kept." },
        },
    });
    let example = json!({ "session": summary_example(), "state": null, "timeline": [], "isComplete": true, "isKept": true });
    operation("getTimeline", "Get the timeline of a session")
        .path_id("The session.", "ses_1")
        .json_response(200, "The session.", schema, Some(example))
        .errors(&[404])
}

pub(super) fn describe_delete() -> Operation {
    operation("endAnySession", "End a session")
        .description("Writes in progress finish, nothing else does. A caller is told.")
        .path_id("The session.", "ses_1")
        .response(204, "The session has ended.", Value::Null)
        .errors(&[404])
}

pub(super) fn summary_schema() -> Value {
    let time = json!({ "type": "integer", "description": "Milliseconds since 1970." });
    json!({
        "type": "object",
        "required": [
            "id", "clientId", "mode", "isActive", "turns", "calls", "registryVersion", "createdMs", "seenMs",
        ],
        "properties": {
            "id": { "type": "string" }, "clientId": { "type": "string" }, "mode": { "enum": ["text", "voice"] },
            "isActive": { "type": "boolean" }, "turns": { "type": "integer" }, "calls": { "type": "integer" },
            "registryVersion": { "type": "string" }, "createdMs": time, "seenMs": time,
        },
    })
}

fn summary_example() -> Value {
    json!({
        "id": "ses_1", "clientId": "c_1", "mode": "text", "isActive": true, "turns": 3, "calls": 5,
        "registryVersion": "1.0.3fa9c2e1", "createdMs": 1_760_000_000_000_u64, "seenMs": 1_760_000_060_000_u64,
    })
}
