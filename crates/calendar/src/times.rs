//! Times as requests give them.

use jiff::{SignedDuration, Timestamp};
use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};

/// Reads the start and the end of an appointment, in whole seconds: iCalendar knows no fractions.
pub fn read_period(start: &str, end: &str) -> Result<(Timestamp, Timestamp), CapabilityError> {
    let start = whole_seconds(instant("start", start)?, SignedDuration::ZERO)?;
    let end = whole_seconds(instant("end", end)?, SignedDuration::from_nanos(999_999_999))?;
    if start >= end {
        return Err(invalid("start must be before end"));
    }
    Ok((start, end))
}

/// Reads the window of a query.
pub fn read_window(time_min: &str, time_max: &str) -> Result<(Timestamp, Timestamp), CapabilityError> {
    let (start, end) = (instant("timeMin", time_min)?, instant("timeMax", time_max)?);
    if start >= end {
        return Err(invalid("timeMin must be before timeMax"));
    }
    Ok((start, end))
}

fn instant(name: &str, text: &str) -> Result<Timestamp, CapabilityError> {
    text.parse().map_err(|_| invalid(&format!("{name} is not an RFC 3339 time with an offset")))
}

fn whole_seconds(instant: Timestamp, up: SignedDuration) -> Result<Timestamp, CapabilityError> {
    let moved = instant.checked_add(up).ok();
    let whole = moved.and_then(|moved| Timestamp::from_second(moved.as_second()).ok());
    whole.ok_or_else(|| invalid("the time is outside the calendar"))
}

fn invalid(message: &str) -> CapabilityError {
    CapabilityError::new(CapabilityErrorCode::InvalidArgument, message)
}
