//! The time that is asked for.

use jiff::{SignedDuration, Timestamp};
use quarterdeck_contracts::{ErrorType, ToolError};
use serde_json::json;

/// Longer things are not appointments, and most often a slip in the date.
const LONGEST: SignedDuration = SignedDuration::from_hours(24);

/// From a moment to another, which is not part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Period {
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
}

impl Period {
    pub(super) fn length(&self) -> SignedDuration {
        self.start.duration_until(self.end)
    }
}

pub(super) fn parse(start: &str, end: &str, now: Timestamp) -> Result<Period, ToolError> {
    let wanted = Period { start: instant("start_time", start)?, end: instant("end_time", end)? };
    if wanted.end <= wanted.start {
        return Err(refuse("end_time", "order", "end_time must be after start_time")
            .with_suggestion("Move the end behind the start; mind the offsets."));
    }
    if wanted.length() > LONGEST {
        return Err(refuse("end_time", "maximum", "an appointment takes at most 24 hours")
            .with_suggestion("Check the dates, or book each day on its own."));
    }
    if wanted.start < now {
        return Err(refuse("start_time", "minimum", "start_time is in the past")
            .with_suggestion(format!("It is {now:.0} now. Choose a later time.")));
    }
    Ok(wanted)
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
    let refusal = ToolError::new(ErrorType::Validation, message).with_details(details);
    ToolError { partial_side_effects: Some(false), ..refusal }
}
