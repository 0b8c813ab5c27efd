//! `GET /api/deck/series`: metrics over time.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{MAX_SAFE_INTEGER, Operator, Shared, check_number, operation};
use crate::deck::{Columns, Range};
use crate::error::ApiError;
use crate::input::QueryParams;
use crate::routes::openapi::Operation;

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub(super) struct SeriesQuery {
    /// The last hour in 10 s samples, or the last two days in 5 min samples.
    #[schemars(extend("example" = "hour"))]
    range: Option<Range>,
    /// Only samples after this time, in milliseconds since 1970.
    #[schemars(range(max = MAX_SAFE_INTEGER), extend("example" = "1760000000000"))]
    after: Option<u64>,
}

pub(super) async fn get(
    State(app): Shared,
    _: Operator,
    QueryParams(query): QueryParams<SeriesQuery>,
) -> Result<Json<Columns>, ApiError> {
    let after = check_number("after", query.after)?.unwrap_or(0);
    Ok(Json(app.deck.charts.series.columns(query.range.unwrap_or(Range::Hour), after)))
}

pub(super) fn describe() -> Operation {
    let example = json!({
        "everyMs": 10_000, "at": [1_760_000_000_000_u64, 1_760_000_010_000_u64], "text": [1, 2], "voice": [0, 0],
        "tools": { "kb_search": { "calls": [0, 3], "errors": [0, 0], "refused": [0, 0], "p50": [null, 9.5],
            "p95": [null, 41], "tokens": [null, 81], "tokensP95": [null, 225] } },
    });
    operation("getSeries", "Get metrics over time")
        .description("Samples in columns. They are kept in memory and start with the server.")
        .query::<SeriesQuery>()
        .json_response::<Columns>(200, "The samples.", Some(example))
}
