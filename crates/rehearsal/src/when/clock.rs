//! Times of the day and lengths of time: “3pm”, “half past three”, “from 10 to 11”, “for an hour”.

use jiff::SignedDuration;
use jiff::civil::Time;

use super::{TimeExpression, number};
use crate::now::Now;
use crate::words::Token;

/// A time before the half of the day is known.
#[derive(Clone, Copy)]
struct ClockTime {
    hour: i8,
    minute: i8,
    half: Option<Half>,
    /// Written with minutes, or by a word: it is a time wherever it stands.
    is_plain: bool,
    /// With two digits for the hour, or more than twelve: nothing to guess.
    is_exact: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Am,
    Pm,
}

pub(super) fn read_time(rest: &[Token<'_>], before: &str) -> Option<(usize, TimeExpression)> {
    let is_expected =
        matches!(before, "at" | "from" | "between" | "until" | "till" | "after" | "before" | "by" | "around");
    // “15:00-16:00” in one piece.
    if let Some((from, to)) = rest[0].lower.split_once(['-', '–'])
        && let (Some(from), Some(to)) = (spoken(from), spoken(to))
        && (is_expected || from.is_plain || to.is_plain)
    {
        let (used, to) = with_half(to, 1, rest);
        return Some((used, range(from, Some(to))?));
    }
    let (used, from) = phrase(rest)?;
    let connects = rest.get(used).is_some_and(|token| {
        matches!(token.lower.as_str(), "to" | "until" | "till" | "-" | "–")
            || (token.lower == "and" && before == "between")
    });
    let to = if connects { phrase(&rest[used + 1..]) } else { None };
    let is_time = is_expected || from.is_plain || to.is_some_and(|(_, to)| to.is_plain);
    if !is_time {
        return None;
    }
    match to {
        Some((more, to)) => Some((used + 1 + more, range(from, Some(to))?)),
        None => Some((used, range(from, None)?)),
    }
}

/// One time, of one token or several.
fn phrase(rest: &[Token<'_>]) -> Option<(usize, ClockTime)> {
    let word = |at: usize| rest.get(at).map_or("", |token| token.lower.as_str());
    let plain =
        |hour: i8, minute: i8, is_exact| ClockTime { hour, minute, half: None, is_plain: true, is_exact };
    match (word(0), word(1)) {
        ("noon" | "midday", _) => return Some((1, plain(12, 0, true))),
        ("midnight", _) => return Some((1, plain(0, 0, true))),
        ("half" | "quarter", "past") => {
            let (used, hour) = with_half(spoken_hour(word(2))?, 3, rest);
            let minute = if word(0) == "half" { 30 } else { 15 };
            return Some((used, ClockTime { minute, is_plain: true, ..hour }));
        }
        ("quarter", "to") => {
            let (used, hour) = with_half(spoken_hour(word(2))?, 3, rest);
            let before = if hour.hour == 1 { 12 } else { hour.hour - 1 };
            return Some((used, ClockTime { hour: before, minute: 45, is_plain: true, ..hour }));
        }
        (hour, "o'clock" | "oclock") => {
            let (used, hour) = with_half(spoken_hour(hour)?, 2, rest);
            return Some((used, ClockTime { is_plain: true, ..hour }));
        }
        _ => {}
    }
    let first = spoken(word(0))?;
    Some(with_half(first, 1, rest))
}

/// Takes an “am” or “pm” that stands apart.
fn with_half(time: ClockTime, used: usize, rest: &[Token<'_>]) -> (usize, ClockTime) {
    let half = match rest.get(used).map_or("", |token| token.lower.as_str()) {
        "am" | "a.m" => Half::Am,
        "pm" | "p.m" => Half::Pm,
        _ => return (used, time),
    };
    match (time.half, time.hour) {
        (None, 1..=12) => (used + 1, ClockTime { half: Some(half), is_plain: true, ..time }),
        _ => (used, time),
    }
}

fn spoken_hour(word: &str) -> Option<ClockTime> {
    match number(word).filter(|hour| hour.fract() == 0.0 && (1.0..=12.0).contains(hour)) {
        Some(hour) => {
            Some(ClockTime { hour: hour as i8, minute: 0, half: None, is_plain: false, is_exact: false })
        }
        None => spoken(word),
    }
}

/// “15:30”, “3pm”, “15.30”, “9”.
fn spoken(word: &str) -> Option<ClockTime> {
    let (digits, half) = match word.strip_suffix("pm").or_else(|| word.strip_suffix("p.m")) {
        Some(digits) => (digits, Some(Half::Pm)),
        None => match word.strip_suffix("am").or_else(|| word.strip_suffix("a.m")) {
            Some(digits) => (digits, Some(Half::Am)),
            None => (word, None),
        },
    };
    let parts: Vec<&str> = digits.split([':', '.']).collect();
    let are_numbers =
        parts.iter().all(|part| (1..=2).contains(&part.len()) && part.bytes().all(|it| it.is_ascii_digit()));
    let has_minutes = parts.get(1).is_some_and(|minutes| minutes.len() == 2);
    if !are_numbers || parts.len() > 3 || (parts.len() > 1 && !has_minutes) {
        return None;
    }
    let hour: i8 = parts[0].parse().ok()?;
    let minute: i8 = parts.get(1).map_or(Ok(0), |minutes| minutes.parse()).ok()?;
    let is_clock = hour <= 23 && minute <= 59 && (half.is_none() || (1..=12).contains(&hour));
    let is_plain = digits.contains(':') || half.is_some();
    let is_exact = hour > 12 || hour == 0 || (digits.contains(':') && parts[0].len() == 2);
    is_clock.then_some(ClockTime { hour, minute, half, is_plain, is_exact })
}

/// “2-3pm” is both in the afternoon; “at 3” is too, because meetings mostly are.
fn range(from: ClockTime, to: Option<ClockTime>) -> Option<TimeExpression> {
    let from = match to {
        Some(to) if from.half.is_none() && !from.is_exact && to.half.is_some() && from.hour <= to.hour => {
            ClockTime { half: to.half, ..from }
        }
        _ => from,
    };
    let start = resolved(from)?;
    let end = match to.map(resolved) {
        Some(Some(end))
            if end <= start && to.is_some_and(|to| to.half.is_none() && !to.is_exact && to.hour < 12) =>
        {
            // “From 11 to 1”.
            Some(Time::new(end.hour() + 12, end.minute(), 0, 0).unwrap_or(end))
        }
        Some(Some(end)) => Some(end),
        Some(None) => return None,
        None => None,
    };
    Some(TimeExpression::Time(start, end))
}

fn resolved(time: ClockTime) -> Option<Time> {
    let hour = match (time.half, time.hour) {
        (Some(Half::Am), 12) => 0,
        (Some(Half::Pm), hour) if hour < 12 => hour + 12,
        (Some(_), hour) => hour,
        (None, 1..=6) if !time.is_exact => time.hour + 12,
        (None, hour) => hour,
    };
    Time::new(hour, time.minute, 0, 0).ok()
}

/// A length (“for 30 minutes”, “an hour and a half”), or a moment that far away (“in two hours”).
pub(super) fn read_length(rest: &[Token<'_>], before: &str, now: &Now) -> Option<(usize, TimeExpression)> {
    if matches!(rest[0].lower.as_str(), "in" | "for") {
        let (used, length) = length(&rest[1..])?;
        if rest[0].lower == "for" {
            return Some((used + 1, TimeExpression::Length(length)));
        }
        let moment = now.moment()?.checked_add(length).ok()?;
        return Some((used + 1, TimeExpression::Moment(moment)));
    }
    let (used, length) = length(rest)?;
    // “A minute” alone is a way of speaking.
    let is_figure =
        matches!(rest[0].lower.as_str(), "a" | "an") && !matches!(before, "of" | "takes" | "lasts");
    (!is_figure || used > 2 || rest[1].lower == "hour").then_some((used, TimeExpression::Length(length)))
}

fn length(rest: &[Token<'_>]) -> Option<(usize, SignedDuration)> {
    let word = |at: usize| rest.get(at).map_or("", |token| token.lower.as_str());
    if let ("half", "an", "hour") = (word(0), word(1), word(2)) {
        return Some((3, SignedDuration::from_mins(30)));
    }
    if let ("quarter", "of", "an") = (word(0), word(1), word(2)) {
        return (word(3) == "hour").then_some((4, SignedDuration::from_mins(15)));
    }
    let (used, first) = single(rest)?;
    match (word(used), word(used + 1), word(used + 2)) {
        ("and", "a", "half") if first.as_mins() % 60 == 0 => Some((used + 3, first + first / 2)),
        ("and", ..) => match single(&rest[used + 1..]) {
            Some((more, second)) => Some((used + 1 + more, first + second)),
            None => Some((used, first)),
        },
        _ => Some((used, first)),
    }
}

/// “30 minutes”, “30-minute”, “90min”, “1.5 hours”.
fn single(rest: &[Token<'_>]) -> Option<(usize, SignedDuration)> {
    let word = rest.first()?.lower.as_str();
    if let Some((count, unit)) = word.split_once('-') {
        return Some((1, minutes(number(count)?, unit)?));
    }
    let digits =
        word.len() - word.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.').len();
    if digits > 0 && digits < word.len() {
        return Some((1, minutes(number(&word[..digits])?, &word[digits..])?));
    }
    Some((2, minutes(number(word)?, &rest.get(1)?.lower)?))
}

fn minutes(count: f64, unit: &str) -> Option<SignedDuration> {
    let seconds = match unit {
        "s" | "sec" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
        _ => return None,
    };
    let length = SignedDuration::from_secs((count * seconds).round() as i64);
    (!length.is_zero()).then_some(length)
}
