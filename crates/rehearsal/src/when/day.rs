//! Days: “tomorrow”, “next Friday”, “1 March”, “2026-03-01”.

use jiff::civil::{Date, DateTime, Weekday};
use jiff::{Timestamp, ToSpan};

use super::{PartOfDay, TimeExpression, number};
use crate::now::Now;
use crate::words::Token;

pub(super) fn read(rest: &[Token<'_>], before: &str, now: &Now) -> Option<(usize, TimeExpression)> {
    exact(rest, now)
        .or_else(|| relative(rest, now))
        .or_else(|| weekday(rest, before, now))
        .or_else(|| of_month(rest, now))
        .or_else(|| numeric(rest, now))
        .or_else(|| part(rest))
}

/// RFC 3339, or the same without an offset, or without a time.
fn exact(rest: &[Token<'_>], now: &Now) -> Option<(usize, TimeExpression)> {
    let word = rest[0].text;
    if word.len() < 10 || word.len() > 40 || !word.starts_with(|letter: char| letter.is_ascii_digit()) {
        return None;
    }
    if let Ok(moment) = word.parse::<Timestamp>() {
        return Some((1, TimeExpression::Moment(now.local(moment))));
    }
    if word.len() == 10 {
        return Some((1, TimeExpression::Days(word.parse().ok()?, None)));
    }
    let local: DateTime = word.parse().ok()?;
    Some((1, TimeExpression::Moment(now.at(local.date(), local.time())?)))
}

fn relative(rest: &[Token<'_>], now: &Now) -> Option<(usize, TimeExpression)> {
    let today = now.today?;
    let word = |at: usize| rest.get(at).map_or("", |token| token.lower.as_str());
    let day = |count, date: Date| Some((count, TimeExpression::Days(date, None)));
    match (word(0), word(1), word(2)) {
        ("today", ..) => day(1, today),
        ("tonight", ..) => Some((1, TimeExpression::PartOfDay(PartOfDay::Evening))),
        ("tomorrow", ..) => day(1, today.tomorrow().ok()?),
        ("overmorrow", ..) => day(1, today.checked_add(2.days()).ok()?),
        ("day", "after", "tomorrow") => day(3, today.checked_add(2.days()).ok()?),
        // At the weekend, “this week” is the one that comes.
        ("this", "week", _) if today.weekday().to_monday_zero_offset() < 5 => {
            Some((2, TimeExpression::Days(today, Some(monday(today)?.checked_add(4.days()).ok()?))))
        }
        ("this" | "next", "week", _) => {
            let monday = monday(today)?.checked_add(7.days()).ok()?;
            Some((2, TimeExpression::Days(monday, Some(monday.checked_add(4.days()).ok()?))))
        }
        ("this" | "the", "weekend", _) => {
            let saturday = monday(today)?.checked_add(5.days()).ok()?;
            Some((2, TimeExpression::Days(saturday.max(today), Some(saturday.tomorrow().ok()?))))
        }
        ("in", count, "day" | "days") => day(3, today.checked_add((whole(count)?).days()).ok()?),
        ("in", count, "week" | "weeks") => day(3, today.checked_add((whole(count)?).weeks()).ok()?),
        _ => None,
    }
}

fn whole(word: &str) -> Option<i64> {
    number(word).filter(|number| number.fract() == 0.0).map(|number| number as i64)
}

fn monday(date: Date) -> Option<Date> {
    date.checked_sub(i64::from(date.weekday().to_monday_zero_offset()).days()).ok()
}

fn weekday(rest: &[Token<'_>], before: &str, now: &Now) -> Option<(usize, TimeExpression)> {
    let today = now.today?;
    let is_next = rest[0].lower == "next";
    let skip = usize::from(matches!(rest[0].lower.as_str(), "next" | "this" | "coming"));
    let wanted = rest.get(skip)?;
    let wanted = named(&wanted.lower, skip == 1 || before == "on")?;
    let date = match is_next {
        true => {
            let next_monday = monday(today)?.checked_add(7.days()).ok()?;
            next_monday.checked_add(i64::from(wanted.to_monday_zero_offset()).days()).ok()?
        }
        false if skip == 1 && today.weekday() == wanted => today,
        false => today.nth_weekday(1, wanted).ok()?,
    };
    Some((skip + 1, TimeExpression::Days(date, None)))
}

/// Short forms count only where a day is expected: the sun and a cat that sat are none.
fn named(word: &str, is_expected: bool) -> Option<Weekday> {
    const DAYS: [(&str, Weekday); 7] = [
        ("monday", Weekday::Monday),
        ("tuesday", Weekday::Tuesday),
        ("wednesday", Weekday::Wednesday),
        ("thursday", Weekday::Thursday),
        ("friday", Weekday::Friday),
        ("saturday", Weekday::Saturday),
        ("sunday", Weekday::Sunday),
    ];
    let word = word.strip_suffix("'s").unwrap_or(word);
    let is_it = |name: &str| name == word || (is_expected && word.len() >= 3 && name.starts_with(word));
    DAYS.iter().find(|(name, _)| is_it(name)).map(|(_, day)| *day)
}

/// “1 March 2026”, “the 1st of March”, “March 1st”.
fn of_month(rest: &[Token<'_>], now: &Now) -> Option<(usize, TimeExpression)> {
    let word = |at: usize| rest.get(at).map_or("", |token| token.lower.as_str());
    let (day, month, count) = if let Some(day) = ordinal(word(0)) {
        let skip = usize::from(word(1) == "of");
        (day, month(word(1 + skip))?, 2 + skip)
    } else {
        (ordinal(word(1))?, month(word(0))?, 2)
    };
    let year = word(count).parse::<i16>().ok().filter(|year| (1000..=9999).contains(year));
    let date = in_year(year, month, day, now)?;
    Some((count + usize::from(year.is_some()), TimeExpression::Days(date, None)))
}

/// A date without a year is the next one.
fn in_year(year: Option<i16>, month: i8, day: i8, now: &Now) -> Option<Date> {
    if let Some(year) = year {
        return Date::new(year, month, day).ok();
    }
    let today = now.today?;
    let candidates =
        [today.year(), today.year() + 1].into_iter().filter_map(|year| Date::new(year, month, day).ok());
    candidates.into_iter().find(|date| *date >= today)
}

fn ordinal(word: &str) -> Option<i8> {
    let digits = ["st", "nd", "rd", "th"].iter().find_map(|ending| word.strip_suffix(ending)).unwrap_or(word);
    let is_short = (1..=2).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|day| is_short && (1..=31).contains(day))
}

fn month(word: &str) -> Option<i8> {
    #[rustfmt::skip]
    const MONTHS: [&str; 12] = [
        "january", "february", "march", "april", "may", "june", "july", "august",
        "september", "october", "november", "december",
    ];
    let is_it =
        |month: &&str| *month == word || (word.len() >= 3 && word.len() <= 4 && month.starts_with(word));
    let at = MONTHS.iter().position(is_it)?;
    i8::try_from(at + 1).ok()
}

/// “1.3.2026” and “1/3/2026”: the day first, but for Americans, who write the month first between slashes.
fn numeric(rest: &[Token<'_>], now: &Now) -> Option<(usize, TimeExpression)> {
    let word = rest[0].text;
    let separator = ['.', '/'].into_iter().find(|separator| word.matches(*separator).count() == 2)?;
    let mut numbers = word.split(separator).map(|part| part.parse::<i16>().ok());
    let (first, second, year) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let is_american = separator == '/' && now.locale.ends_with("-US");
    let (day, month) = if is_american { (second, first) } else { (first, second) };
    let date = Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    (year >= 1000).then_some((1, TimeExpression::Days(date, None)))
}

fn part(rest: &[Token<'_>]) -> Option<(usize, TimeExpression)> {
    let part = match rest[0].lower.as_str() {
        "morning" => PartOfDay::Morning,
        "afternoon" => PartOfDay::Afternoon,
        "evening" => PartOfDay::Evening,
        _ => return None,
    };
    Some((1, TimeExpression::PartOfDay(part)))
}
