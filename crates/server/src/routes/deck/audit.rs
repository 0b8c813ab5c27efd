//! `GET /api/deck/audit`: lines of the audit log, newest first.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use quarterdeck_runtime::audit::{Filter, Search};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{MAX_SAFE_INTEGER, Operator, Shared, audit_log, check_number, operation, search_audit};
use crate::error::ApiError;
use crate::input::QueryParams;
use crate::routes::openapi::Operation;
use crate::routes::openapi::envelope::AuditLineShape;

const MAX_LINES: usize = 200;
/// Scanned per request; the response tells where to continue.
const MAX_SCANNED_BYTES: u64 = 64 << 20;
const MAX_TERM_CHARS: usize = 200;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(super) struct AuditQuery {
    /// The session.
    #[schemars(length(max = MAX_TERM_CHARS), extend("example" = "ses_1"))]
    session: Option<String>,
    /// The client.
    #[schemars(length(max = MAX_TERM_CHARS), extend("example" = "c_1"))]
    client: Option<String>,
    /// The tool.
    #[schemars(length(max = MAX_TERM_CHARS), extend("example" = "kb_search"))]
    tool: Option<String>,
    /// The event.
    #[schemars(length(max = MAX_TERM_CHARS), extend("example" = "tool_execution"))]
    event: Option<String>,
    /// The error type.
    #[schemars(length(max = MAX_TERM_CHARS), extend("example" = "VALIDATION"))]
    error: Option<String>,
    /// Text in the line, ignoring case.
    #[schemars(length(max = MAX_TERM_CHARS), extend("example" = "fram"))]
    text: Option<String>,
    /// At or after this time.
    #[schemars(extend("format" = "date-time", "example" = "2026-11-15T09:30:00Z"))]
    since: Option<String>,
    /// Before this time.
    #[schemars(extend("format" = "date-time", "example" = "2026-11-16T09:30:00Z"))]
    until: Option<String>,
    /// `next` of the previous page.
    #[schemars(range(max = MAX_SAFE_INTEGER), extend("example" = "81920"))]
    before: Option<u64>,
    /// Maximum lines.
    #[schemars(range(min = 1, max = MAX_LINES), extend("example" = "50"))]
    limit: Option<usize>,
}

/// Lines of the audit log, newest first.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuditPage {
    #[schemars(with = "Vec<AuditLineShape>")]
    lines: Vec<Value>,
    /// Send as `before` for older lines; null if there are none. A page may be empty and still have a next one, because
    /// each request scans a limited part.
    next: Option<u64>,
    /// Bytes scanned.
    looked_at: u64,
    /// Lines among those scanned that cannot be read: too long, or no JSON object.
    damaged_lines: u64,
}

pub(super) async fn get(
    State(app): Shared,
    _: Operator,
    QueryParams(query): QueryParams<AuditQuery>,
) -> Result<Json<AuditPage>, ApiError> {
    let log = audit_log(&app)?;
    let found = search_audit(&app, log, to_search(query)?).await?;
    Ok(Json(AuditPage {
        lines: found.lines,
        next: found.next,
        looked_at: found.scanned_bytes,
        damaged_lines: found.damaged_lines,
    }))
}

fn to_search(query: AuditQuery) -> Result<Search, ApiError> {
    let terms = [&query.session, &query.client, &query.tool, &query.event, &query.error, &query.text];
    if terms.into_iter().flatten().any(|term| term.chars().count() > MAX_TERM_CHARS) {
        return Err(ApiError::validation(format!("A search term has at most {MAX_TERM_CHARS} characters.")));
    }
    let max_lines = query.limit.unwrap_or(50);
    if !(1..=MAX_LINES).contains(&max_lines) {
        return Err(ApiError::validation(format!("`limit` must be between 1 and {MAX_LINES}.")));
    }
    // An empty form field is no filter.
    let term = |term: Option<String>| term.filter(|term| !term.is_empty());
    let filter = Filter {
        event: term(query.event),
        client: term(query.client),
        session: term(query.session),
        tool: term(query.tool),
        error: term(query.error),
        since: time("since", query.since)?,
        until: time("until", query.until)?,
    };
    let before = check_number("before", query.before)?;
    Ok(Search { filter, text: term(query.text), before, max_lines, max_bytes: MAX_SCANNED_BYTES })
}

/// A time in the log's own format, so that both compare as text.
fn time(name: &str, text: Option<String>) -> Result<Option<String>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    let time: Timestamp = text
        .parse()
        .map_err(|_| ApiError::validation(format!("`{name}` must be a time like 2026-11-15T09:30:00Z.")))?;
    Ok(Some(format!("{time:.3}")))
}

pub(super) fn describe() -> Operation {
    let line = json!({
        "seq": 12, "event": "tool_execution", "time": "2026-11-15T09:30:00.000Z", "sessionId": "ses_1",
        "clientId": "c_1", "toolId": "kb_search", "duration": 12, "ok": true,
    });
    let example = json!({ "lines": [line], "next": 81_920, "lookedAt": 12_288, "damagedLines": 0 });
    operation("searchAudit", "Search the audit log, newest first")
        .query::<AuditQuery>()
        .json_response::<AuditPage>(200, "The lines.", Some(example))
        .errors(&[404])
}
