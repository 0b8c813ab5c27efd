//! The range that was asked for.

use jiff::SignedDuration;
use quarterdeck_contracts::ToolError;

use super::periods::Period;
use crate::refusal::{instant, refuse};

const MAX_LENGTH: SignedDuration = SignedDuration::from_hours(31 * 24);

pub(super) fn parse(start: &str, end: &str) -> Result<Period, ToolError> {
    let range = Period { start: instant("start_date", start)?, end: instant("end_date", end)? };
    if range.end <= range.start {
        return Err(refuse("end_date", "order", "end_date must be after start_date")
            .with_suggestion("Swap the two, or move the end."));
    }
    if range.length() > MAX_LENGTH {
        return Err(refuse("end_date", "maximum", "the range is longer than 31 days")
            .with_suggestion("Ask for at most 31 days at once."));
    }
    Ok(range)
}
