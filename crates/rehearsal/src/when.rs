//! Dates, times and lengths of time in plain English.
//!
//! It guesses only where one meaning is usual, and the reply repeats the full date:
//! “on Friday” is the first one after today, “next Friday” the one of next week (weeks begin on Monday), “at 3” is in
//! the afternoon, and a date without a year is the next one.

mod clock;
mod day;
mod zone;

use std::collections::BTreeSet;

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Zoned};

use crate::now::Now;
use crate::words::Token;

pub(crate) use zone::{all as all_zones, find as find_zone};

/// What a text says about time.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct When {
    /// A moment that needs nothing more: with its offset, or “in two hours”.
    pub(crate) moment: Option<Zoned>,
    /// The day, or the first of several.
    pub(crate) date: Option<Date>,
    /// The last of several days.
    pub(crate) until: Option<Date>,
    pub(crate) time: Option<Time>,
    /// Where a range of times ends.
    pub(crate) end: Option<Time>,
    pub(crate) part: Option<PartOfDay>,
    pub(crate) length: Option<SignedDuration>,
    /// The zone that the times are meant in, when it is not the user's.
    pub(crate) zone: Option<TimeZone>,
    /// The tokens that were read.
    pub(crate) used: BTreeSet<usize>,
}

/// A part of the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartOfDay {
    Morning,
    Afternoon,
    Evening,
}

impl PartOfDay {
    fn hours(self) -> (Time, Time) {
        match self {
            Self::Morning => (Time::constant(9, 0, 0, 0), Time::constant(12, 0, 0, 0)),
            Self::Afternoon => (Time::constant(12, 0, 0, 0), Time::constant(17, 0, 0, 0)),
            Self::Evening => (Time::constant(17, 0, 0, 0), Time::constant(21, 0, 0, 0)),
        }
    }
}

enum TimeExpression {
    Moment(Zoned),
    Days(Date, Option<Date>),
    Time(Time, Option<Time>),
    PartOfDay(PartOfDay),
    Length(SignedDuration),
    Zone(TimeZone),
}

/// Reads everything about time in a text.
pub(crate) fn read(tokens: &[Token<'_>], now: &Now) -> When {
    let mut when = When::default();
    let mut at = 0;
    while at < tokens.len() {
        let rest = &tokens[at..];
        let before = at.checked_sub(1).map_or("", |before| tokens[before].lower.as_str());
        let expression = day::read(rest, before, now)
            .or_else(|| clock::read_length(rest, before, now))
            .or_else(|| clock::read_time(rest, before))
            .or_else(|| zone::read(rest));
        match expression {
            Some((count, expression)) => {
                when.take(expression, at..at + count);
                at += count;
            }
            None => at += 1,
        }
    }
    when
}

impl When {
    /// The first of each kind counts.
    fn take(&mut self, expression: TimeExpression, place: std::ops::Range<usize>) {
        match expression {
            TimeExpression::Moment(moment) if self.moment.is_none() => self.moment = Some(moment),
            TimeExpression::Days(date, until) if self.date.is_none() => {
                (self.date, self.until) = (Some(date), until);
            }
            // “From Monday to Wednesday”.
            TimeExpression::Days(date, None) if self.until.is_none() && self.date < Some(date) => {
                self.until = Some(date);
            }
            TimeExpression::Time(time, end) if self.time.is_none() => {
                (self.time, self.end) = (Some(time), end);
            }
            TimeExpression::PartOfDay(part) if self.part.is_none() => self.part = Some(part),
            TimeExpression::Length(length) if self.length.is_none() => self.length = Some(length),
            TimeExpression::Zone(zone) if self.zone.is_none() => self.zone = Some(zone),
            _ => return,
        }
        self.used.extend(place);
    }

    /// The moment that is meant, if it is a moment: a day alone is none.
    pub(crate) fn start(&self, now: &Now) -> Option<Zoned> {
        if let Some(moment) = &self.moment {
            return Some(moment.clone());
        }
        let time = self.time?;
        let date = match self.date {
            Some(date) => date,
            // A time alone is today's, or tomorrow's when it has passed.
            None => match (now.today?, now.time) {
                (today, Some(passed)) if time <= passed => today.tomorrow().ok()?,
                (today, _) => today,
            },
        };
        self.at(now, date, time)
    }

    /// The end that was said, or the length after the start.
    pub(crate) fn finish(&self, now: &Now, start: &Zoned, usual: SignedDuration) -> Option<Zoned> {
        let by_length = || start.checked_add(self.length.unwrap_or(usual)).ok();
        match self.end {
            Some(end) if self.moment.is_none() => {
                let zone = self.zone.clone().unwrap_or_else(|| now.zone.clone());
                let day = start.with_time_zone(zone).date();
                let day = if Some(end) <= self.time { day.tomorrow().ok()? } else { day };
                self.at(now, day, end)
            }
            _ => by_length(),
        }
    }

    /// A range to look at: times that were said, or the part of the day, or office hours. What has passed today is
    /// left out.
    pub(crate) fn range(&self, now: &Now) -> Option<(Zoned, Zoned)> {
        const MORNING: Time = Time::constant(9, 0, 0, 0);
        const EVENING: Time = Time::constant(17, 0, 0, 0);
        if let Some(moment) = &self.moment {
            return Some((moment.clone(), self.finish(now, moment, SignedDuration::from_hours(1))?));
        }
        if self.time.is_some() && self.until.is_none() {
            let start = self.start(now)?;
            // “Free at 15:00?” asks about the hour, “free after 15:00?” is close enough to it.
            let end = self.finish(now, &start, SignedDuration::from_hours(1))?;
            return Some((start, end));
        }
        let first = self.date.or(now.today.filter(|_| self.part.is_some()))?;
        let last = self.until.unwrap_or(first);
        let (from, to) = match (self.part, self.time) {
            (Some(part), _) => part.hours(),
            (None, Some(time)) => (time, self.end.unwrap_or(EVENING)),
            (None, None) => (MORNING, EVENING),
        };
        let (mut start, end) = (self.at(now, first, from)?, self.at(now, last, to)?);
        if let Some(moment) = now.moment()
            && moment > start
            && moment < end
        {
            start = moment;
        }
        (start < end).then_some((start, end))
    }

    fn at(&self, now: &Now, date: Date, time: Time) -> Option<Zoned> {
        match &self.zone {
            Some(zone) => date.to_datetime(time).to_zoned(zone.clone()).ok(),
            None => now.at(date, time),
        }
    }
}

/// A number in digits, or one of the small ones in words.
fn number(word: &str) -> Option<f64> {
    const WORDS: [&str; 13] = [
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
        "twelve",
    ];
    let value = match word {
        "a" | "an" => 1.0,
        "fifteen" => 15.0,
        "twenty" => 20.0,
        "thirty" => 30.0,
        "forty-five" => 45.0,
        "sixty" => 60.0,
        "ninety" => 90.0,
        _ => match WORDS.iter().position(|known| *known == word) {
            Some(value) => value as f64,
            // Only digits: “inf” and “1e9” are numbers for a computer alone.
            None if word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => word.parse().ok()?,
            None => return None,
        },
    };
    (0.0..=10_000.0).contains(&value).then_some(value)
}

#[cfg(test)]
mod tests;
