//! `GET /api/deck/series`: the figures over time.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Operator, Shared, number, number_schema, operation};
use crate::deck::Range;
use crate::error::ApiError;
use crate::input::Asking;
use crate::routes::openapi::Operation;

#[derive(Deserialize)]
pub(super) struct Asked {
    range: Option<Range>,
    after: Option<u64>,
}

pub(super) async fn get(
    State(app): Shared,
    _: Operator,
    Asking(asked): Asking<Asked>,
) -> Result<Json<Value>, ApiError> {
    let after = number("after", asked.after)?.unwrap_or(0);
    Ok(Json(app.series.columns(asked.range.unwrap_or(Range::Hour), after)))
}

pub(super) fn described() -> Operation {
    let column = json!({ "type": "array", "items": { "type": "number" } });
    let with_gaps = json!({ "type": "array", "items": { "type": ["number", "null"] } });
    let schema = json!({
        "type": "object", "required": ["everyMs", "at", "text", "voice", "tools"],
        "properties": {
            "everyMs": { "type": "integer", "description": "How far samples are apart." },
            "at": { "type": "array", "items": { "type": "integer" }, "description": "When, in milliseconds since 1970." },
            "text": column, "voice": column,
            "tools": {
                "type": "object",
                "description": "Each tool's columns, of what has come since the sample before: calls, errors, refusals, and \
                                percentiles of the answers, which are null where there were none.",
                "additionalProperties": { "type": "object", "additionalProperties": with_gaps },
            },
        },
    });
    let example = json!({
        "everyMs": 10_000, "at": [1_760_000_000_000_u64, 1_760_000_010_000_u64], "text": [1, 2], "voice": [0, 0],
        "tools": { "kb_search": { "calls": [0, 3], "errors": [0, 0], "refused": [0, 0], "p50": [null, 9.5],
            "p95": [null, 41], "tokens": [null, 81], "tokensP95": [null, 225] } },
    });
    operation("getSeries", "The figures over time")
        .about("Samples in columns. They are kept in memory and begin anew with the server.")
        .may_take(
            "query",
            "range",
            json!({ "enum": ["hour", "days"] }),
            "The last hour every ten seconds, or the last two days every five minutes.",
            "hour",
        )
        .may_take(
            "query",
            "after",
            number_schema(),
            "Only samples after this, in milliseconds since 1970.",
            "1760000000000",
        )
        .gives_json(200, "The samples.", schema, Some(example))
        .refuses(&[400])
}
