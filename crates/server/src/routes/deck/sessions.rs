//! `/api/deck/sessions`: everybody's sessions, what happened in one, and its end.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use quarterdeck_contracts::{CommitError, Mode};
use quarterdeck_runtime::audit::{AuditMatches, Filter, Search};
use quarterdeck_runtime::{PendingEnd, end_stored_session, list_recent_sessions, session};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Operator, Shared, known_id, operation, searched, stored};
use crate::app::App;
use crate::error::ApiError;
use crate::input::{Asking, Id};
use crate::routes::openapi::{Operation, reference};

/// How many sessions are given at once.
const MOST: usize = 200;
/// How many are looked at for that.
const LOOK_AT: usize = 20_000;
/// How many lines of the trail a timeline has.
const MOST_LINES: usize = 500;
/// How much of the trail is looked at for them.
const LOOK_AT_BYTES: u64 = 64 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    client: Option<String>,
    mode: Option<Mode>,
    active: Option<bool>,
    limit: Option<usize>,
}

pub(super) async fn list(
    State(app): Shared,
    _: Operator,
    Asking(asked): Asking<Asked>,
) -> Result<Json<Value>, ApiError> {
    let most = asked.limit.unwrap_or(50);
    if !(1..=MOST).contains(&most) {
        return Err(ApiError::validation(format!("`limit` is between 1 and {MOST}.")));
    }
    let client = asked.client.filter(|client| !client.is_empty());
    // What has happened a moment ago is in the store by then.
    app.orchestrator.save_all();
    let recent = list_recent_sessions(&**app.orchestrator.store(), most, LOOK_AT, |session| {
        client.as_deref().is_none_or(|client| session.client_id == client)
            && asked.mode.is_none_or(|mode| session.mode == mode)
            && asked.active.is_none_or(|active| session.is_active == active)
    });
    let recent = recent.await.map_err(|error| stored(&error))?;
    Ok(Json(json!({
        "sessions": recent.sessions, "matching": recent.wanted, "lookedAt": recent.seen,
        "isComplete": recent.is_complete,
    })))
}

pub(super) async fn get(State(app): Shared, _: Operator, Id(id): Id) -> Result<Json<Value>, ApiError> {
    known_id(&id)?;
    app.orchestrator.save_all();
    let found = session(&**app.orchestrator.store(), &id).await.map_err(|error| stored(&error))?;
    let Some(summary) = found else { return Err(unknown()) };
    let state = app.orchestrator.find(&id).map(|session| json!(session.state()));
    let AuditMatches { mut lines, next, .. } = timeline(&app, &id, summary.created_ms).await?;
    lines.reverse();
    Ok(Json(json!({
        "session": summary, "state": state, "timeline": lines, "isComplete": next.is_none(),
        "isKept": app.operations.audit.is_some(),
    })))
}

/// The lines of a session, the newest first. Nothing is on record where no trail is kept.
async fn timeline(app: &App, id: &str, since_ms: u64) -> Result<AuditMatches, ApiError> {
    let Some(trail) = app.operations.audit.clone() else { return Ok(AuditMatches::default()) };
    let since = Timestamp::from_millisecond(since_ms as i64).ok().map(|time| format!("{time:.3}"));
    let filter = Filter { session: Some(id.to_owned()), since, ..Filter::default() };
    let wanted = Search { filter, max_lines: MOST_LINES, max_bytes: LOOK_AT_BYTES, ..Search::default() };
    searched(app, trail, wanted).await
}

pub(super) async fn delete(
    State(app): Shared,
    operator: Operator,
    Id(id): Id,
) -> Result<StatusCode, ApiError> {
    known_id(&id)?;
    if !end(&app, &id).await? {
        return Err(unknown());
    }
    operator.did(&app, "end_session", json!({ "sessionId": id }));
    Ok(StatusCode::NO_CONTENT)
}

/// Ends a session, wherever it is; `false` when there is none that has not ended.
pub(super) async fn end(app: &App, id: &str) -> Result<bool, ApiError> {
    // Somebody may come back to a session just when it is ended in the store.
    for _ in 0..3 {
        if let Some(session) = app.orchestrator.find(id) {
            let was_active = session.state().is_active;
            session.end(PendingEnd::with_reason("ended_by_operator")).await;
            return Ok(was_active);
        }
        match end_stored_session(&**app.orchestrator.store(), id).await {
            Ok(ended) => return Ok(ended),
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(stored(&error)),
        }
    }
    Err(ApiError::transient("The session is in use. Please try again.", 1))
}

fn unknown() -> ApiError {
    ApiError::not_found("There is no such session, or it has ended.")
}

pub(super) fn list_described() -> Operation {
    let schema = json!({
        "type": "object", "required": ["sessions", "matching", "lookedAt", "isComplete"],
        "properties": {
            "sessions": { "type": "array", "items": reference("schemas", "SessionSummary") },
            "matching": {
                "type": "integer", "description": "How many of those looked at are asked for, also beyond the limit.",
            },
            "lookedAt": { "type": "integer", "description": "How many sessions were looked at." },
            "isComplete": { "type": "boolean", "description": "Whether every session that is asked for is here." },
        },
    });
    let example = json!({ "sessions": [summary()], "matching": 1, "lookedAt": 1, "isComplete": true });
    operation("listSessions", "Everybody's sessions, the latest first")
        .may_take("query", "client", json!({ "type": "string" }), "Whose.", "c_1")
        .may_take("query", "mode", json!({ "enum": ["text", "voice"] }), "How they reach the agent.", "text")
        .may_take("query", "active", json!({ "type": "boolean" }), "Whether it has not ended.", "true")
        .may_take(
            "query",
            "limit",
            json!({ "type": "integer", "minimum": 1, "maximum": MOST }),
            "How many.",
            "50",
        )
        .gives_json(200, "The sessions.", schema, Some(example))
        .refuses(&[400])
}

pub(super) fn described() -> Operation {
    let schema = json!({
        "type": "object", "required": ["session", "state", "timeline", "isComplete", "isKept"],
        "properties": {
            "session": reference("schemas", "SessionSummary"),
            "state": { "type": ["object", "null"], "description": "Its state, while it is in memory." },
            "timeline": {
                "type": "array", "items": reference("schemas", "AuditLine"),
                "description": "Calls, changes of state and confirmations, the oldest first; turns are numbered in them.",
            },
            "isComplete": { "type": "boolean", "description": "Whether the beginning is there." },
            "isKept": { "type": "boolean", "description": "Whether there is a trail at all." },
        },
    });
    let example =
        json!({ "session": summary(), "state": null, "timeline": [], "isComplete": true, "isKept": true });
    operation("getTimeline", "What happened in a session")
        .takes_id("The session.", "ses_1")
        .gives_json(200, "The session.", schema, Some(example))
        .refuses(&[404])
}

pub(super) fn delete_described() -> Operation {
    operation("endAnySession", "End somebody's session")
        .about("What has begun to write finishes; nothing else does. Whoever is in a call is told.")
        .takes_id("The session.", "ses_1")
        .gives(204, "It has ended.", Value::Null)
        .refuses(&[404])
}

/// A session in a few words, for the shared schemas.
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

fn summary() -> Value {
    json!({
        "id": "ses_1", "clientId": "c_1", "mode": "text", "isActive": true, "turns": 3, "calls": 5,
        "registryVersion": "1.0.3fa9c2e1", "createdMs": 1_760_000_000_000_u64, "seenMs": 1_760_000_060_000_u64,
    })
}
