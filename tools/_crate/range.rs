//! The range of time that a question is about.

use jiff::{SignedDuration, Timestamp};
use quarterdeck_contracts::ToolError;

use crate::refusal::{instant, refuse};

const MAX_LENGTH: SignedDuration = SignedDuration::from_hours(31 * 24);

/// Reads `start_date` and `end_date`.
pub(crate) fn parse(start: &str, end: &str) -> Result<(Timestamp, Timestamp), ToolError> {
    let (start, end) = (instant("start_date", start)?, instant("end_date", end)?);
    if end <= start {
        return Err(refuse("end_date", "order", "end_date must be after start_date")
            .with_suggestion("Swap the two, or move the end."));
    }
    if start.duration_until(end) > MAX_LENGTH {
        return Err(refuse("end_date", "maximum", "the range is longer than 31 days")
            .with_suggestion("Ask for at most 31 days at once."));
    }
    Ok((start, end))
}
