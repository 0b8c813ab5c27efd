//! `GET /api/deck/audit`: lines of the trail, the newest first.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use quarterdeck_runtime::audit::{Filter, Search};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Operator, Shared, number, number_schema, operation, searched, trail};
use crate::error::ApiError;
use crate::input::Asking;
use crate::routes::openapi::{Operation, reference};

/// How many lines are given at once.
const MOST: usize = 200;
/// How much of the trail is looked at for one answer. It says where to go on.
const LOOK_AT: u64 = 64 << 20;
/// The longest text that is searched for.
const LONGEST: usize = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
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
    Asking(asked): Asking<Asked>,
) -> Result<Json<Value>, ApiError> {
    let trail = trail(&app)?;
    let found = searched(&app, trail, wanted(asked)?).await?;
    Ok(Json(json!({ "lines": found.lines, "next": found.next, "lookedAt": found.scanned_bytes })))
}

fn wanted(asked: Asked) -> Result<Search, ApiError> {
    let words = [&asked.session, &asked.client, &asked.tool, &asked.event, &asked.error, &asked.text];
    if words.into_iter().flatten().any(|word| word.chars().count() > LONGEST) {
        return Err(ApiError::validation(format!("A word to search for has at most {LONGEST} characters.")));
    }
    let most = asked.limit.unwrap_or(50);
    if !(1..=MOST).contains(&most) {
        return Err(ApiError::validation(format!("`limit` is between 1 and {MOST}.")));
    }
    // An empty field of a form asks for nothing.
    let given = |word: Option<String>| word.filter(|word| !word.is_empty());
    let filter = Filter {
        event: given(asked.event),
        client: given(asked.client),
        session: given(asked.session),
        tool: given(asked.tool),
        error: given(asked.error),
        since: time("since", asked.since)?,
        until: time("until", asked.until)?,
    };
    let before = number("before", asked.before)?;
    Ok(Search { filter, text: given(asked.text), before, max_lines: most, max_bytes: LOOK_AT })
}

/// A time as the trail writes it, so that both can be compared as text.
fn time(name: &str, text: Option<String>) -> Result<Option<String>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    let time: Timestamp = text
        .parse()
        .map_err(|_| ApiError::validation(format!("`{name}` is not a time like 2026-11-15T09:30:00Z.")))?;
    Ok(Some(format!("{time:.3}")))
}

pub(super) fn described() -> Operation {
    let word = || json!({ "type": "string", "maxLength": LONGEST });
    let time = || json!({ "type": "string", "format": "date-time" });
    let schema = json!({
        "type": "object", "required": ["lines", "next", "lookedAt"],
        "properties": {
            "lines": { "type": "array", "items": reference("schemas", "AuditLine") },
            "next": {
                "type": ["integer", "null"],
                "description": "What to send as `before` for older lines; null when there are none. There may be a next \
                                page without a line in this one: only so much is looked at for one answer.",
            },
            "lookedAt": { "type": "integer", "description": "How many bytes were looked at." },
        },
    });
    let example = json!({ "lines": [line()], "next": 81_920, "lookedAt": 12_288 });
    operation("searchAudit", "Lines of the audit trail, the newest first")
        .may_take("query", "session", word(), "In which session.", "ses_1")
        .may_take("query", "client", word(), "Whose.", "c_1")
        .may_take("query", "tool", word(), "Of which tool.", "kb_search")
        .may_take("query", "event", word(), "Of what kind.", "tool_execution")
        .may_take("query", "error", word(), "How it failed.", "VALIDATION")
        .may_take("query", "text", word(), "What it holds, in whatever case.", "fram")
        .may_take("query", "since", time(), "Not before this.", "2026-11-15T09:30:00Z")
        .may_take("query", "until", time(), "Before this.", "2026-11-16T09:30:00Z")
        .may_take("query", "before", number_schema(), "Where the page before said to go on.", "81920")
        .may_take(
            "query",
            "limit",
            json!({ "type": "integer", "minimum": 1, "maximum": MOST }),
            "How many.",
            "50",
        )
        .gives_json(200, "The lines.", schema, Some(example))
        .refuses(&[400, 404])
}

/// A line of the trail, for the shared schemas.
pub(super) fn line_schema() -> Value {
    json!({
        "type": "object", "required": ["event", "time"],
        "description": "A line of the audit trail. What else it holds depends on its event.",
        "properties": {
            "seq": { "type": "integer" }, "event": { "type": "string" }, "time": { "type": "string" },
            "sessionId": { "type": "string" }, "clientId": { "type": "string" }, "toolId": { "type": ["string", "null"] },
            "ok": { "type": "boolean" }, "errorType": reference("schemas", "ErrorType"),
        },
    })
}

fn line() -> Value {
    json!({
        "seq": 12, "event": "tool_execution", "time": "2026-11-15T09:30:00.000Z", "sessionId": "ses_1",
        "clientId": "c_1", "toolId": "kb_search", "duration": 12, "ok": true,
    })
}
