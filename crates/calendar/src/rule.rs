//! Recurrence rules, on wall-clock times.
//!
//! A rule says "every Tuesday at nine"; which instant that is, the zone decides afterwards. So rules are expanded as if
//! every clock were UTC's, and jiff makes instants of the results: one place knows about summer time.
//!
//! The engine is asked for one occurrence at a time and searches up to 100,000 periods for each. What that costs is
//! estimated from the distance between results and charged to a [`Budget`], so that no rule, however hostile, can
//! spin.

use chrono::{Datelike, Timelike};
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span};
use rrule::RRuleSet;

use crate::moment::Moment;

/// How many periods the engine searches before it gives up on a rule.
const MAX_SEARCHED_PERIODS: u64 = 100_000;
/// Every quarter of an hour.
const MAX_TIMES_PER_DAY: usize = 96;
const MAX_RULE_BYTES: usize = 1_000;

/// What expansion may still cost, counted in periods that the engine looks at.
pub(crate) struct Budget(u64);

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BudgetExceeded;

impl Budget {
    /// Enough for any real calendar, and still well under a second.
    pub(crate) const QUERY: u64 = 500_000;
    /// For the rules of one file, which are each tried once.
    pub(crate) const IMPORT: u64 = 500_000;

    pub(crate) fn new(periods: u64) -> Self {
        Self(periods)
    }

    pub(crate) fn spend(&mut self, periods: u64) -> Result<(), BudgetExceeded> {
        let left = self.0.checked_sub(periods);
        // Once it is spent it stays so: the next rule must not search again to find that out.
        self.0 = left.unwrap_or(0);
        left.map(|_| ()).ok_or(BudgetExceeded)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    frequency: Frequency,
    interval: i64,
    count: Option<u64>,
    until: Option<Until>,
    /// Everything else, as it was written.
    rest: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frequency {
    Hourly,
    Daily,
    Weekly,
    Monthly,
    Yearly,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Until {
    Day(jiff::civil::Date),
    Wall(DateTime),
    Utc(DateTime),
}

impl Frequency {
    fn find(name: &str) -> Result<Self, String> {
        Ok(match name {
            "HOURLY" => Self::Hourly,
            "DAILY" => Self::Daily,
            "WEEKLY" => Self::Weekly,
            "MONTHLY" => Self::Monthly,
            "YEARLY" => Self::Yearly,
            "SECONDLY" | "MINUTELY" => return Err("repeats more often than hourly".into()),
            _ => return Err(format!("has a rule with the unknown frequency {name:?}")),
        })
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Hourly => "HOURLY",
            Self::Daily => "DAILY",
            Self::Weekly => "WEEKLY",
            Self::Monthly => "MONTHLY",
            Self::Yearly => "YEARLY",
        }
    }

    /// Seconds of a period, at least.
    fn seconds(self) -> i64 {
        match self {
            Self::Hourly => 3_600,
            Self::Daily => 86_400,
            Self::Weekly => 7 * 86_400,
            Self::Monthly => 28 * 86_400,
            Self::Yearly => 365 * 86_400,
        }
    }

    /// Whether all periods are equally long in wall-clock time.
    fn is_even(self) -> bool {
        matches!(self, Self::Hourly | Self::Daily | Self::Weekly)
    }
}

impl Rule {
    /// Reads the value of an `RRULE`. The error says what the event does that we cannot.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.to_ascii_uppercase();
        let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '=' | ';' | ',' | '-' | '+');
        if text.len() > MAX_RULE_BYTES || !text.chars().all(known) {
            return Err("has a rule that is not a recurrence rule".into());
        }
        let mut frequency = None;
        let mut rule =
            Self { frequency: Frequency::Daily, interval: 1, count: None, until: None, rest: String::new() };
        let mut times_a_day = 1;
        for part in text.split(';').filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').ok_or("has a rule with a part that has no value")?;
            let number = || value.parse().map_err(|_| format!("has a rule with {key} {value:?}"));
            match key {
                "FREQ" => frequency = Some(Frequency::find(value)?),
                "INTERVAL" => rule.interval = number()?,
                "COUNT" => rule.count = Some(number()?.unsigned_abs()),
                "UNTIL" => rule.until = Some(until(value)?),
                "BYHOUR" | "BYMINUTE" | "BYSECOND" | "BYMONTH" | "BYMONTHDAY" | "BYYEARDAY" | "BYWEEKNO"
                | "BYDAY" | "BYSETPOS" | "WKST" => {
                    if matches!(key, "BYHOUR" | "BYMINUTE" | "BYSECOND") {
                        times_a_day *= value.split(',').count();
                    }
                    rule.rest.push_str(&format!(";{part}"));
                }
                _ => return Err(format!("has a rule with the unknown part {key:?}")),
            }
        }
        rule.frequency = frequency.ok_or("has a rule without a frequency")?;
        if times_a_day > MAX_TIMES_PER_DAY {
            return Err(format!("begins more than {MAX_TIMES_PER_DAY} times a day"));
        }
        if !(1..=10_000).contains(&rule.interval) || rule.count == Some(0) {
            return Err("has a rule whose interval or count makes no sense".into());
        }
        // What the engine makes of the rest shows only with a start.
        rule.engine(jiff::civil::date(2026, 1, 1).at(0, 0, 0, 0), None)?;
        Ok(rule)
    }

    /// The wall-clock times in `from..to` at which a series begins that first began at `start`, in order.
    pub(crate) fn starts(
        &self,
        start: &Moment,
        home: &TimeZone,
        (from, to): (DateTime, DateTime),
        budget: &mut Budget,
    ) -> Result<Vec<DateTime>, BudgetExceeded> {
        let first = start.wall();
        let last = self.last_wall(start, home);
        if to <= first || last.is_some_and(|last| last < from || last < first) {
            return Ok(Vec::new());
        }
        budget.spend(1)?;
        let begin = self.skip_ahead(first, from);
        let Ok(engine) = self.engine(begin, last) else { return Ok(Vec::new()) };

        let mut found = Vec::new();
        let mut before = begin;
        let mut produced = 0;
        for occurrence in &engine.limit() {
            let Some(wall) = to_jiff(&occurrence) else { break };
            budget.spend(1 + self.periods(before, wall))?;
            before = wall;
            produced += 1;
            if wall >= to || last.is_some_and(|last| wall > last) {
                return Ok(found);
            }
            if wall >= from {
                found.push(wall);
            }
        }
        // It ended by itself, or the engine searched until it gave up, which is expensive.
        let searched = match (self.count, last) {
            (Some(count), _) if produced >= count => 0,
            (_, Some(last)) => self.periods(before, last).min(MAX_SEARCHED_PERIODS),
            _ => MAX_SEARCHED_PERIODS,
        };
        budget.spend(searched)?;
        Ok(found)
    }

    /// Whether it has any occurrence. One without would be searched in vain by every query.
    pub(crate) fn has_occurrence(
        &self,
        start: &Moment,
        home: &TimeZone,
        budget: &mut Budget,
    ) -> Result<bool, BudgetExceeded> {
        let first = start.wall();
        // An end before the beginning leaves the first time alone, and costs nothing to see.
        let Ok(engine) = self.engine(first, self.last_wall(start, home)) else { return Ok(true) };
        budget.spend(1)?;
        let next = (&engine.limit()).into_iter().next();
        let found = next.as_ref().and_then(to_jiff);
        budget.spend(found.map_or(MAX_SEARCHED_PERIODS, |wall| self.periods(first, wall)))?;
        Ok(found.is_some())
    }

    /// Moves the first time forward by whole periods, so that a series from long ago costs no more than a new one.
    /// One that is counted must be counted from its beginning.
    fn skip_ahead(&self, first: DateTime, from: DateTime) -> DateTime {
        if self.count.is_some() || from <= first {
            return first;
        }
        let skipped = if self.frequency.is_even() {
            let period = self.frequency.seconds() * self.interval;
            let periods = first.duration_until(from).as_secs() / period - 1;
            first.checked_add(SignedDuration::from_secs(periods.max(0) * period))
        } else {
            // Four years at a time, in which every day of a year comes again but for the turns of some centuries.
            let years = 4 * self.interval;
            let times = (i64::from(from.year()) - i64::from(first.year()) - 1) / years;
            first.checked_add(Span::new().years(times.max(0) * years))
        };
        // Weeks by number take their weekday from the first time, which years do not keep.
        match skipped {
            Ok(begin) if self.frequency.is_even() => begin,
            Ok(begin) if begin.day() == first.day() && !self.rest.contains("BYWEEKNO") => begin,
            _ => first,
        }
    }

    fn periods(&self, from: DateTime, to: DateTime) -> u64 {
        let seconds = from.duration_until(to).as_secs().max(0);
        (seconds / (self.frequency.seconds() * self.interval)).unsigned_abs()
    }

    /// The last time at which it may begin, as wall-clock time of the start.
    fn last_wall(&self, start: &Moment, home: &TimeZone) -> Option<DateTime> {
        Some(match self.until.as_ref()? {
            Until::Day(day) => day.to_datetime(Time::MAX).with().subsec_nanosecond(0).build().ok()?,
            Until::Wall(wall) => *wall,
            Until::Utc(utc) if start.is_date() => *utc,
            Until::Utc(utc) => {
                let instant = TimeZone::UTC.to_timestamp(*utc).ok()?;
                start.zone(home).to_datetime(instant)
            }
        })
    }

    fn engine(&self, begin: DateTime, last: Option<DateTime>) -> Result<RRuleSet, String> {
        let mut text = format!("DTSTART:{}Z\nRRULE:FREQ={}", compact(begin), self.frequency.as_str());
        text.push_str(&format!(";INTERVAL={}", self.interval));
        match (self.count, last) {
            (Some(count), _) => text.push_str(&format!(";COUNT={}", count.min(u64::from(u32::MAX)))),
            (None, Some(last)) => text.push_str(&format!(";UNTIL={}Z", compact(last))),
            (None, None) => {}
        }
        text.push_str(&self.rest);
        text.parse().map_err(|error| format!("has a rule that cannot be followed: {error}"))
    }
}

fn until(value: &str) -> Result<Until, String> {
    let bad = || format!("has a rule with UNTIL {value:?}");
    if value.len() == 8 {
        return value.parse().map(Until::Day).map_err(|_| bad());
    }
    match value.strip_suffix('Z') {
        Some(utc) => utc.parse().map(Until::Utc).map_err(|_| bad()),
        None => value.parse().map(Until::Wall).map_err(|_| bad()),
    }
}

/// `20260113T090000`.
pub(crate) fn compact(wall: DateTime) -> String {
    wall.strftime("%Y%m%dT%H%M%S").to_string()
}

fn to_jiff(wall: &chrono::DateTime<rrule::Tz>) -> Option<DateTime> {
    let field = |value: u32| i8::try_from(value).ok();
    DateTime::new(
        i16::try_from(wall.year()).ok()?,
        field(wall.month())?,
        field(wall.day())?,
        field(wall.hour())?,
        field(wall.minute())?,
        field(wall.second())?,
        0,
    )
    .ok()
}
