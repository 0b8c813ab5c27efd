//! The time that is asked for.

use jiff::{SignedDuration, Timestamp};
use quarterdeck_contracts::ToolError;

use crate::refusal::{instant, refuse};

/// Longer things are not appointments, and most often a slip in the date.
const MAX_LENGTH: SignedDuration = SignedDuration::from_hours(24);

/// From a moment to another, which is not part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Period {
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
}

impl Period {
    pub(crate) fn length(&self) -> SignedDuration {
        self.start.duration_until(self.end)
    }
}

/// A period that may be booked. Nothing has been changed when it is refused, which a writing tool says.
pub(crate) fn parse(start: &str, end: &str, now: Timestamp) -> Result<Period, ToolError> {
    bookable(start, end, now).map_err(|refusal| ToolError { partial_side_effects: Some(false), ..refusal })
}

fn bookable(start: &str, end: &str, now: Timestamp) -> Result<Period, ToolError> {
    let wanted = Period { start: instant("start_time", start)?, end: instant("end_time", end)? };
    if wanted.end <= wanted.start {
        return Err(refuse("end_time", "order", "end_time must be after start_time")
            .with_suggestion("Move the end behind the start; mind the offsets."));
    }
    if wanted.length() > MAX_LENGTH {
        return Err(refuse("end_time", "maximum", "an appointment takes at most 24 hours")
            .with_suggestion("Check the dates, or book each day on its own."));
    }
    if wanted.start < now {
        return Err(refuse("start_time", "minimum", "start_time is in the past")
            .with_suggestion(format!("It is {now:.0} now. Choose a later time.")));
    }
    Ok(wanted)
}
