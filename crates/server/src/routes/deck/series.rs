//! `GET /api/deck/series`: metrics over time.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Operator, Shared, check_number, number_schema, operation};
use crate::deck::Range;
use crate::error::ApiError;
use crate::input::QueryParams;
use crate::routes::openapi::Operation;

#[derive(Deserialize)]
pub(super) struct SeriesQuery {
    range: Option<Range>,
    after: Option<u64>,
}

pub(super) async fn get(
    State(app): Shared,
    _: Operator,
    QueryParams(query): QueryParams<SeriesQuery>,
) -> Result<Json<Value>, ApiError> {
    let after = check_number("after", query.after)?.unwrap_or(0);
    Ok(Json(app.series.columns(query.range.unwrap_or(Range::Hour), after)))
}

pub(super) fn describe() -> Operation {
    let column = json!({ "type": "array", "items": { "type": "number" } });
    let with_gaps = json!({ "type": "array", "items": { "type": ["number", "null"] } });
    let schema = json!({
        "type": "object", "required": ["everyMs", "at", "text", "voice", "tools"],
        "properties": {
            "everyMs": { "type": "integer", "description": "The sample interval." },
            "at": { "type": "array", "items": { "type": "integer" }, "description": "Milliseconds since 1970." },
            "text": column, "voice": column,
            "tools": {
                "type": "object",
                "description": "Each tool's columns since the previous sample: calls, errors, refusals, and percentiles, \
                                which are null where there were no answers.",
                "additionalProperties": { "type": "object", "additionalProperties": with_gaps },
            },
        },
    });
    let example = json!({
        "everyMs": 10_000, "at": [1_760_000_000_000_u64, 1_760_000_010_000_u64], "text": [1, 2], "voice": [0, 0],
        "tools": { "kb_search": { "calls": [0, 3], "errors": [0, 0], "refused": [0, 0], "p50": [null, 9.5],
            "p95": [null, 41], "tokens": [null, 81], "tokensP95": [null, 225] } },
    });
    operation("getSeries", "Get metrics over time")
        .description("Samples in columns. They are kept in memory and start with the server.")
        .optional(
            "query",
            "range",
            json!({ "enum": ["hour", "days"] }),
            "The last hour in 10 s samples, or the last two days in 5 min samples.",
            "hour",
        )
        .optional(
            "query",
            "after",
            number_schema(),
            "Only samples after this time, in milliseconds since 1970.",
            "1760000000000",
        )
        .json_response(200, "The samples.", schema, Some(example))
        .errors(&[400])
}
