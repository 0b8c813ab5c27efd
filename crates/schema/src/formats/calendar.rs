//! Dates, times and durations.

use super::scan::{digits, is_ecma_space, skip, take_while};

pub(super) fn is_date(text: &str) -> bool {
    date(text).is_some()
}

/// With an offset.
pub(super) fn is_time(text: &str) -> bool {
    time(text, Offset::Required).is_some()
}

/// The offset may be left out.
pub(super) fn is_iso_time(text: &str) -> bool {
    time(text, Offset::Optional).is_some()
}

pub(super) fn is_date_time(text: &str) -> bool {
    date_time(text, Offset::Required)
}

pub(super) fn is_iso_date_time(text: &str) -> bool {
    date_time(text, Offset::Optional)
}

/// Weeks alone, or any selection of the other units in their order.
pub(super) fn is_duration(text: &str) -> bool {
    let Some(text) = text.strip_prefix('P').filter(|rest| !rest.is_empty()) else { return false };
    if let Some(weeks) = text.strip_suffix('W') {
        return !weeks.is_empty() && weeks.bytes().all(|byte| byte.is_ascii_digit());
    }
    match text.split_once('T') {
        Some((date, time)) => units(date, "YMD") && !time.is_empty() && units(time, "HMS"),
        None => units(text, "YMD"),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Offset {
    Required,
    Optional,
}

fn date_time(text: &str, offset: Offset) -> bool {
    let mut parts = text.split(|character: char| matches!(character, 't' | 'T') || is_ecma_space(character));
    match (parts.next(), parts.next(), parts.next()) {
        (Some(date), Some(time_of_day), None) => is_date(date) && time(time_of_day, offset).is_some(),
        _ => false,
    }
}

fn date(mut text: &str) -> Option<()> {
    let year = digits(&mut text, 4)?;
    skip(&mut text, '-').then_some(())?;
    let month = digits(&mut text, 2)?;
    skip(&mut text, '-').then_some(())?;
    let day = digits(&mut text, 2)?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_in_month = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    (text.is_empty() && (1..=days_in_month).contains(&day)).then_some(())
}

fn time(mut text: &str, offset: Offset) -> Option<()> {
    let hour = digits(&mut text, 2)?;
    skip(&mut text, ':').then_some(())?;
    let minute = digits(&mut text, 2)?;
    skip(&mut text, ':').then_some(())?;
    let second = seconds(&mut text)?;
    let (sign, offset_hour, offset_minute) = match text {
        "" if offset == Offset::Required => return None,
        "" | "z" | "Z" => (1, 0, 0),
        _ => zone(text)?,
    };
    if offset_hour > 23 || offset_minute > 59 {
        return None;
    }
    if hour <= 23 && minute <= 59 && second < 60.0 {
        return Some(());
    }
    // A leap second: the last one of the day in UTC.
    let utc_minute = i64::from(minute) - i64::from(offset_minute) * sign;
    let borrow = i64::from(utc_minute < 0);
    let utc_hour = i64::from(hour) - i64::from(offset_hour) * sign - borrow;
    (matches!(utc_hour, 23 | -1) && matches!(utc_minute, 59 | -1) && second < 61.0).then_some(())
}

/// Two digits and perhaps a fraction. It is read as a binary number, so that fifteen nines round up to a minute.
fn seconds(text: &mut &str) -> Option<f64> {
    let whole = *text;
    digits(text, 2)?;
    if skip(text, '.') && take_while(text, |character| character.is_ascii_digit()).is_empty() {
        return None;
    }
    whole[..whole.len() - text.len()].parse().ok()
}

fn zone(mut text: &str) -> Option<(i64, u32, u32)> {
    let sign = match (skip(&mut text, '+'), skip(&mut text, '-')) {
        (true, false) => 1,
        (false, true) => -1,
        _ => return None,
    };
    let hour = digits(&mut text, 2)?;
    if text.is_empty() {
        return Some((sign, hour, 0));
    }
    skip(&mut text, ':');
    let minute = digits(&mut text, 2)?;
    text.is_empty().then_some((sign, hour, minute))
}

fn units(mut text: &str, mut letters: &str) -> bool {
    while !text.is_empty() {
        if take_while(&mut text, |character| character.is_ascii_digit()).is_empty() {
            return false;
        }
        let Some(position) = text.chars().next().and_then(|letter| letters.find(letter)) else {
            return false;
        };
        letters = &letters[position + 1..];
        text = &text[1..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_know_the_calendar() {
        assert!(
            is_date("2024-02-29") && !is_date("2023-02-29") && !is_date("2024-00-10") && !is_date("2024-1-1")
        );
        assert!(!is_date("2024-01-01\n") && !is_date("２０２４-01-01"));
    }

    #[test]
    fn times_need_an_offset_and_know_leap_seconds() {
        assert!(is_time("12:00:00Z") && is_time("12:00:00+01") && is_time("12:00:00.5-0130"));
        assert!(!is_time("12:00:00") && is_iso_time("12:00:00") && !is_time("12:00:00.Z"));
        assert!(is_time("23:59:60Z") && is_time("00:29:60+00:30") && !is_time("12:00:60Z"));
        assert!(!is_time("12:00:59.999999999999999Z"));
    }

    #[test]
    fn dates_and_times_are_joined_by_a_letter_or_a_space() {
        assert!(is_date_time("2024-01-01T00:00:00Z") && is_date_time("2024-01-01 00:00:00z"));
        assert!(!is_date_time("2024-01-01_00:00:00Z") && !is_date_time("2024-01-01T00:00:00"));
    }

    #[test]
    fn durations_keep_the_order_of_units() {
        for good in ["P1Y", "P1Y2D", "PT1H2S", "P4W", "P1DT12H"] {
            assert!(is_duration(good), "{good}");
        }
        for bad in ["P", "PT", "P1D2Y", "P1W2D", "1D", "P1", "PT1D", "P-1D"] {
            assert!(!is_duration(bad), "{bad}");
        }
    }
}
