//! From a row to what happens in a window.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};

use crate::moment::Moment;
use crate::row::{Details, EventRow};
use crate::rule::{Budget, BudgetExceeded, Rule};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Occurrence<'a> {
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
    /// When it would begin if nothing had been changed.
    pub(crate) original: Timestamp,
    pub(crate) details: &'a Details,
}

/// The end is not included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
}

impl Window {
    fn touches(&self, start: Timestamp, end: Timestamp) -> bool {
        start < self.end && end > self.start && start < end
    }
}

/// The busy occurrences of an event that touch a window. What takes no time is not among them.
pub(crate) fn occurrences<'a>(
    row: &'a EventRow,
    window: Window,
    home: &TimeZone,
    budget: &mut Budget,
) -> Result<Vec<Occurrence<'a>>, BudgetExceeded> {
    let mut found = Vec::new();
    let mut add = |original: &Moment, start: &Moment, end: Option<Timestamp>, details: &'a Details| {
        let (Some(start), Some(end)) = (start.instant(home), end) else { return };
        if details.is_busy() && window.touches(start, end) {
            let original = original.instant(home).unwrap_or(start);
            found.push(Occurrence { start, end, original, details });
        }
    };
    if row.details.is_busy() {
        let length = Length::of(&row.details, home);
        for start in starts(row, window, &length, home, budget)? {
            add(&start, &start, length.end_of(&start, home), &row.details);
        }
    }
    for changed in &row.overrides {
        add(&changed.instead_of, &changed.details.start, changed.details.end.instant(home), &changed.details);
    }
    budget.spend(found.len() as u64)?;
    Ok(found)
}

/// How long an event takes: days for whole days, exact time otherwise.
enum Length {
    Days(i32),
    Exactly(SignedDuration),
}

impl Length {
    fn of(details: &Details, home: &TimeZone) -> Self {
        let Details { start, end, .. } = details;
        if start.is_date() && end.is_date() {
            return Self::Days((end.wall().date() - start.wall().date()).get_days());
        }
        match (start.instant(home), end.instant(home)) {
            (Some(start), Some(end)) => Self::Exactly(start.duration_until(end)),
            _ => Self::Exactly(SignedDuration::ZERO),
        }
    }

    fn end_of(&self, start: &Moment, home: &TimeZone) -> Option<Timestamp> {
        match self {
            Self::Days(days) => start.at_wall(start.wall().checked_add(days.days()).ok()?)?.instant(home),
            Self::Exactly(time) => start.instant(home)?.checked_add(*time).ok(),
        }
    }

    /// At least as long as any occurrence.
    fn upper_bound(&self) -> SignedDuration {
        match self {
            Self::Days(days) => SignedDuration::from_hours(i64::from(*days) * 24),
            Self::Exactly(time) => *time,
        }
    }
}

/// When the occurrences begin that keep to the series.
fn starts(
    row: &EventRow,
    window: Window,
    length: &Length,
    home: &TimeZone,
    budget: &mut Budget,
) -> Result<Vec<Moment>, BudgetExceeded> {
    let first = &row.details.start;
    let reach = walls_of(window, length, &first.zone(home));
    let mut walls: BTreeSet<DateTime> = [first.wall()].into();
    for rule in &row.rules {
        // Rules are checked before a row is made; one that was not is not followed, and its first time still counts.
        if let Ok(rule) = Rule::parse(rule) {
            walls.extend(rule.starts(first, home, reach, budget)?);
        }
    }
    let by_rule = walls.into_iter().filter_map(|wall| first.at_wall(wall));
    let starts: BTreeMap<Timestamp, Moment> = by_rule
        .chain(row.also.iter().cloned())
        .filter_map(|start| Some((start.instant(home)?, start)))
        .collect();
    let excluded = ExcludedStarts::of(row, home);
    Ok(starts.into_iter().filter(|(at, start)| !excluded.has(*at, start)).map(|(_, start)| start).collect())
}

/// Occurrences that were cancelled or moved.
#[derive(Default)]
struct ExcludedStarts {
    instants: BTreeSet<Timestamp>,
    /// Some programs give only the day.
    days: BTreeSet<Date>,
}

impl ExcludedStarts {
    fn of(row: &EventRow, home: &TimeZone) -> Self {
        let mut excluded = Self::default();
        let changed = row.overrides.iter().map(|changed| &changed.instead_of);
        for except in row.except.iter().chain(changed) {
            excluded.instants.extend(except.instant(home));
            if except.is_date() {
                excluded.days.insert(except.wall().date());
            }
        }
        excluded
    }

    fn has(&self, at: Timestamp, start: &Moment) -> bool {
        self.instants.contains(&at) || self.days.contains(&start.wall().date())
    }
}

/// The wall-clock times at which something may begin that touches the window, with room for any offset.
fn walls_of(window: Window, length: &Length, zone: &TimeZone) -> (DateTime, DateTime) {
    let from = zone.to_datetime(window.start).saturating_sub(length.upper_bound()).saturating_sub(2.days());
    (from, zone.to_datetime(window.end).saturating_add(2.days()))
}
