//! How far away a moment is: “in 3 hours”, “yesterday”, “vor 2 Wochen”.

use icu_decimal::input::Decimal;
use icu_experimental::relativetime::options::Numeric;
use icu_experimental::relativetime::{RelativeTimeFormatter, RelativeTimeFormatterOptions};
use icu_locale_core::Locale;
use icu_provider::DataError;
use jiff::Zoned;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

pub(super) fn words(there: &Zoned, now: &Zoned, locale: &Locale) -> Result<String, DataError> {
    let (amount, unit) = distance(there, now);
    Ok(formatter(unit, locale)?.format(Decimal::from(amount)).to_string())
}

/// The distance in the largest unit that is still exact enough, negative for the past.
///
/// Days are days on the calendar of the time zone, so that “tomorrow” is tomorrow there, whether that day has
/// 23, 24 or 25 hours. Less than half a day away stays in hours, also across midnight.
pub(super) fn distance(there: &Zoned, now: &Zoned) -> (i64, Unit) {
    let seconds = there.timestamp().as_second() - now.timestamp().as_second();
    let minutes = rounded(seconds as f64 / 60.0);
    let days = days_between(there, now);

    if seconds.abs() < 60 {
        (seconds, Unit::Second)
    } else if minutes.abs() < 60 {
        (minutes, Unit::Minute)
    } else if days == 0 || seconds.abs() < 12 * 3600 {
        (rounded(seconds as f64 / 3600.0), Unit::Hour)
    } else if days.abs() < 14 {
        (days, Unit::Day)
    } else if days.abs() < 28 {
        (rounded(days as f64 / 7.0), Unit::Week)
    } else if days.abs() < 350 {
        (rounded(days as f64 / 30.44).clamp(-11, 11), Unit::Month)
    } else {
        (rounded(days as f64 / 365.2425), Unit::Year)
    }
}

fn days_between(there: &Zoned, now: &Zoned) -> i64 {
    let midnight = |zoned: &Zoned| zoned.date().to_datetime(jiff::civil::Time::midnight());
    midnight(now).duration_until(midnight(there)).as_hours() / 24
}

fn rounded(amount: f64) -> i64 {
    amount.round() as i64
}

/// “Yesterday”, “tomorrow” and “now” are exact. “Next month” is not when it means thirty days from now, so the
/// larger units keep their numbers.
fn formatter(unit: Unit, locale: &Locale) -> Result<RelativeTimeFormatter, DataError> {
    let exact = RelativeTimeFormatterOptions::default();
    let idiomatic = exact.with_numeric(Numeric::Auto);
    match unit {
        Unit::Second => RelativeTimeFormatter::try_new_long_second(locale.into(), idiomatic),
        Unit::Minute => RelativeTimeFormatter::try_new_long_minute(locale.into(), exact),
        Unit::Hour => RelativeTimeFormatter::try_new_long_hour(locale.into(), exact),
        Unit::Day => RelativeTimeFormatter::try_new_long_day(locale.into(), idiomatic),
        Unit::Week => RelativeTimeFormatter::try_new_long_week(locale.into(), exact),
        Unit::Month => RelativeTimeFormatter::try_new_long_month(locale.into(), exact),
        Unit::Year => RelativeTimeFormatter::try_new_long_year(locale.into(), exact),
    }
}
