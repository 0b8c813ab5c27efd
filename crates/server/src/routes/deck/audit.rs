//! `GET /api/deck/audit`: lines of the audit log, newest first.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use quarterdeck_runtime::audit::{Filter, Search};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Operator, Shared, audit_log, check_number, number_schema, operation, search_audit};
use crate::error::ApiError;
use crate::input::QueryParams;
use crate::routes::openapi::{Operation, reference};

const MAX_LINES: usize = 200;
/// Scanned per request; the response tells where to continue.
const MAX_SCANNED_BYTES: u64 = 64 << 20;
const MAX_TERM_CHARS: usize = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditQuery {
    session: Option<String>,
    client: Option<String>,
    tool: Option<String>,
    event: Option<String>,
    error: Option<String>,
    text: Option<String>,
    since: Option<String>,
    until: Option<String>,
    before: Option<u64>,
    limit: Option<usize>,
}

pub(super) async fn get(
    State(app): Shared,
    _: Operator,
    QueryParams(query): QueryParams<AuditQuery>,
) -> Result<Json<Value>, ApiError> {
    let log = audit_log(&app)?;
    let found = search_audit(&app, log, to_search(query)?).await?;
    Ok(Json(json!({ "lines": found.lines, "next": found.next, "lookedAt": found.scanned_bytes })))
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
    let term = || json!({ "type": "string", "maxLength": MAX_TERM_CHARS });
    let time = || json!({ "type": "string", "format": "date-time" });
    let schema = json!({
        "type": "object", "required": ["lines", "next", "lookedAt"],
        "properties": {
            "lines": { "type": "array", "items": reference("schemas", "AuditLine") },
            "next": {
                "type": ["integer", "null"],
                "description": "Send as `before` for older lines; null if there are none. A page may be empty and still \
                                have a next one, because each request scans a limited part.",
            },
            "lookedAt": { "type": "integer", "description": "Bytes scanned." },
        },
    });
    let example = json!({ "lines": [line_example()], "next": 81_920, "lookedAt": 12_288 });
    operation("searchAudit", "Search the audit log, newest first")
        .optional("query", "session", term(), "The session.", "ses_1")
        .optional("query", "client", term(), "The client.", "c_1")
        .optional("query", "tool", term(), "The tool.", "kb_search")
        .optional("query", "event", term(), "The event.", "tool_execution")
        .optional("query", "error", term(), "The error type.", "VALIDATION")
        .optional("query", "text", term(), "Text in the line, ignoring case.", "fram")
        .optional("query", "since", time(), "At or after this time.", "2026-11-15T09:30:00Z")
        .optional("query", "until", time(), "Before this time.", "2026-11-16T09:30:00Z")
        .optional("query", "before", number_schema(), "`next` of the previous page.", "81920")
        .optional(
            "query",
            "limit",
            json!({ "type": "integer", "minimum": 1, "maximum": MAX_LINES }),
            "Maximum lines.",
            "50",
        )
        .json_response(200, "The lines.", schema, Some(example))
        .errors(&[400, 404])
}

pub(super) fn line_schema() -> Value {
    json!({
        "type": "object", "required": ["event", "time"],
        "description": "A line of the audit log. Further fields depend on the event.",
        "properties": {
            "seq": { "type": "integer" }, "event": { "type": "string" }, "time": { "type": "string" },
            "sessionId": { "type": "string" }, "clientId": { "type": "string" }, "toolId": { "type": ["string", "null"] },
            "ok": { "type": "boolean" }, "errorType": reference("schemas", "ErrorType"),
        },
    })
}

fn line_example() -> Value {
    json!({
        "seq": 12, "event": "tool_execution", "time": "2026-11-15T09:30:00.000Z", "sessionId": "ses_1",
        "clientId": "c_1", "toolId": "kb_search", "duration": 12, "ok": true,
    })
}
