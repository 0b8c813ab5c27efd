//! Times as operators type and read them. Everything is shown in UTC.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use quarterdeck_runtime::{Clock, SystemClock};

/// An RFC 3339 time, a time or date in UTC, or how long ago: `90s`, `15m`, `2h`, `7d`.
pub(crate) fn parse_time(text: &str) -> Result<Timestamp, String> {
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    if let Some(time) = parse_ago(text) {
        return Ok(time);
    }
    // A date alone is its midnight.
    text.parse::<DateTime>()
        .and_then(|time| time.to_zoned(TimeZone::UTC))
        .map(|time| time.timestamp())
        .map_err(|_| "write 2026-01-13, 2026-01-13T09:00:00Z, or how long ago, such as 2h".into())
}

/// How long: `90s`, `15m`, `2h`, `7d`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let seconds = seconds(text).and_then(|seconds| u64::try_from(seconds).ok());
    seconds.map(Duration::from_secs).ok_or_else(|| "write a number and a unit, such as 90s, 10m or 2h".into())
}

fn parse_ago(text: &str) -> Option<Timestamp> {
    now().checked_sub(SignedDuration::from_secs(seconds(text)?)).ok()
}

fn seconds(text: &str) -> Option<i64> {
    let unit = match text.chars().last()? {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    let number: i64 = text[..text.len() - 1].parse().ok().filter(|number| *number >= 0)?;
    number.checked_mul(unit)
}

/// Milliseconds since 1970, to the second.
pub(crate) fn show_ms(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map_or_else(|| "for ever".into(), |time| format!("{time:.0}"))
}

pub(crate) fn now() -> Timestamp {
    Timestamp::try_from(SystemClock.now()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    u64::try_from(now().as_millisecond()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_may_be_written_in_several_ways() {
        for text in ["2026-01-13", "2026-01-13T00:00", "2026-01-13T00:00:00Z", "2026-01-13T01:00:00+01:00"] {
            assert_eq!(parse_time(text).unwrap().to_string(), "2026-01-13T00:00:00Z", "{text}");
        }
        let since = now().duration_since(parse_time("2h").unwrap());
        assert!((7_199..7_260).contains(&since.as_secs()), "{since}");
        for text in ["", "h", "-2h", "2 h", "2w", "yesterday", "9999999999999999d", "é"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_time_beyond_the_calendar_is_for_ever() {
        assert_eq!(show_ms(1_768_294_800_000), "2026-01-13T09:00:00Z");
        assert_eq!(show_ms(u64::MAX), "for ever");
    }
}
