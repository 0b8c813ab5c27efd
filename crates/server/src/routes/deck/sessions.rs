//! `/api/deck/sessions`: all sessions, the timeline of one, and ending it.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use quarterdeck_contracts::{CommitError, Mode};
use quarterdeck_runtime::audit::{AuditMatches, Filter, Search};
use quarterdeck_runtime::{SessionSummary, find_holder, find_session, list_recent_sessions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Operator, Shared, check_id, operation, search_audit, store_error};
use crate::app::App;
use crate::error::ApiError;
use crate::input::{Id, QueryParams};
use crate::request_log::RequestLog;
use crate::routes::openapi::Operation;
use crate::routes::openapi::envelope::{AuditLineShape, nullable_object};

const MAX_SESSIONS: usize = 200;
/// Scanned per request.
const MAX_SCANNED_SESSIONS: usize = 20_000;
const MAX_TIMELINE_LINES: usize = 500;
/// Scanned for a timeline.
const MAX_SCANNED_BYTES: u64 = 64 << 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(super) struct SessionsQuery {
    /// The client.
    #[schemars(extend("example" = "c_1"))]
    client: Option<String>,
    /// The mode.
    #[schemars(extend("example" = "text"))]
    mode: Option<Mode>,
    /// Whether it is open.
    #[schemars(extend("example" = "true"))]
    active: Option<bool>,
    /// Maximum sessions.
    #[schemars(range(min = 1, max = MAX_SESSIONS), extend("example" = "50"))]
    limit: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionList {
    #[schemars(with = "Vec<SessionSummaryShape>")]
    sessions: Vec<DeckSession>,
    /// Matches among the scanned sessions, also beyond the limit.
    matching: usize,
    /// Sessions scanned.
    looked_at: usize,
    /// Whether all matches are included.
    is_complete: bool,
}

/// A session, and the node that has it.
#[derive(Serialize)]
struct DeckSession {
    #[serde(flatten)]
    summary: SessionSummary,
    node: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Timeline {
    #[schemars(with = "SessionSummaryShape")]
    session: DeckSession,
    /// The state, if it is in memory.
    #[schemars(schema_with = "nullable_object")]
    state: Option<Value>,
    /// Calls, state changes and confirmations, oldest first, with turn numbers.
    #[schemars(with = "Vec<AuditLineShape>")]
    timeline: Vec<Value>,
    /// Whether the start is included.
    is_complete: bool,
    /// Whether an audit log is kept.
    is_kept: bool,
}

#[derive(JsonSchema)]
#[schemars(rename = "SessionSummary", rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
struct SessionSummaryShape {
    id: String,
    client_id: String,
    mode: Mode,
    is_active: bool,
    turns: u64,
    calls: u64,
    registry_version: String,
    /// Milliseconds since 1970.
    created_ms: u64,
    /// Milliseconds since 1970.
    seen_ms: u64,
    /// The node that has it at present, or null: no node has, or the server is alone on its store.
    node: Option<String>,
}

pub(super) async fn list(
    State(app): Shared,
    _: Operator,
    QueryParams(query): QueryParams<SessionsQuery>,
) -> Result<Json<SessionList>, ApiError> {
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
    let mut sessions = Vec::new();
    for summary in recent.sessions {
        sessions.push(with_node(&app, summary).await?);
    }
    Ok(Json(SessionList {
        sessions,
        matching: recent.matching,
        looked_at: recent.examined,
        is_complete: recent.is_complete,
    }))
}

async fn with_node(app: &App, summary: SessionSummary) -> Result<DeckSession, ApiError> {
    let node = match app.orchestrator.node_name() {
        Some(_) if summary.is_active => find_holder(&**app.orchestrator.store(), &summary.id).await,
        _ => Ok(None),
    };
    Ok(DeckSession { node: node.map_err(|error| store_error(&error))?, summary })
}

pub(super) async fn get(
    State(app): Shared,
    _: Operator,
    log: RequestLog,
    Id(id): Id,
) -> Result<Json<Timeline>, ApiError> {
    check_id(&id)?;
    app.orchestrator.save_all();
    let found = find_session(&**app.orchestrator.store(), &id).await.map_err(|error| store_error(&error))?;
    let Some(summary) = found else { return Err(not_found()) };
    log.set_session(&id);
    let state = app.orchestrator.find(&id).map(|session| json!(session.state()));
    let AuditMatches { mut lines, next, .. } = timeline(&app, &id, summary.created_ms).await?;
    lines.reverse();
    Ok(Json(Timeline {
        session: with_node(&app, summary).await?,
        state,
        timeline: lines,
        is_complete: next.is_none(),
        is_kept: app.operations.audit.is_some(),
    }))
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
    log: RequestLog,
    Id(id): Id,
) -> Result<StatusCode, ApiError> {
    check_id(&id)?;
    if !end(&app, &id).await? {
        return Err(not_found());
    }
    log.set_session(&id);
    operator.record(&app, "end_session", json!({ "sessionId": id }));
    Ok(StatusCode::NO_CONTENT)
}

/// Ends a session in memory, on another node or in the store; `false` if there is no active one.
pub(super) async fn end(app: &App, id: &str) -> Result<bool, ApiError> {
    // A client may resume a session just when it is ended in the store.
    for _ in 0..3 {
        match app.orchestrator.end_session(id, "ended_by_operator").await {
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
    let example =
        json!({ "sessions": [summary_example()], "matching": 1, "lookedAt": 1, "isComplete": true });
    operation("listSessions", "List sessions, latest first")
        .query::<SessionsQuery>()
        .json_response::<SessionList>(200, "The sessions.", Some(example))
}

pub(super) fn describe() -> Operation {
    let example = json!({
        "session": summary_example(), "state": null, "timeline": [], "isComplete": true, "isKept": true,
    });
    operation("getTimeline", "Get the timeline of a session")
        .path_id("The session.", "ses_1")
        .json_response::<Timeline>(200, "The session.", Some(example))
        .errors(&[404])
}

pub(super) fn describe_delete() -> Operation {
    operation("endAnySession", "End a session")
        .description("Writes in progress finish, nothing else does. A caller is told.")
        .path_id("The session.", "ses_1")
        .response(204, "The session has ended.", Vec::new())
        .errors(&[404])
}

fn summary_example() -> Value {
    json!({
        "id": "ses_1", "clientId": "c_1", "mode": "text", "isActive": true, "turns": 3, "calls": 5,
        "registryVersion": "1.0.3fa9c2e1", "createdMs": 1_760_000_000_000_u64, "seenMs": 1_760_000_060_000_u64,
        "node": "one",
    })
}
