//! The range that was asked for.

use jiff::{SignedDuration, Timestamp};
use quarterdeck_contracts::{ErrorType, ToolError};
use serde_json::json;

use super::periods::Period;

const LONGEST: SignedDuration = SignedDuration::from_hours(31 * 24);

pub(super) fn parse(start: &str, end: &str) -> Result<Period, ToolError> {
    let range = Period { start: instant("start_date", start)?, end: instant("end_date", end)? };
    if range.end <= range.start {
        return Err(refuse("end_date", "order", "end_date must be after start_date")
            .with_suggestion("Swap the two, or move the end."));
    }
    if range.length() > LONGEST {
        return Err(refuse("end_date", "maximum", "the range is longer than 31 days")
            .with_suggestion("Ask for at most 31 days at once."));
    }
    Ok(range)
}

/// The schema has checked the form; what is left to refuse is a moment outside the calendar.
fn instant(name: &str, text: &str) -> Result<Timestamp, ToolError> {
    text.parse().map_err(|_| {
        refuse(name, "format", &format!("{name} is not a moment with an offset"))
            .with_suggestion("Write it like 2026-01-13T09:00:00Z or 2026-01-13T10:00:00+01:00.")
    })
}

/// A refusal of one parameter, in the form that the schema's own refusals have.
fn refuse(name: &str, keyword: &str, message: &str) -> ToolError {
    let details = json!([{ "path": format!("/{name}"), "keyword": keyword, "message": message }]);
    ToolError::new(ErrorType::Validation, message).with_details(details)
}
