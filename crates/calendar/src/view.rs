//! From rows to the events that callers see, the same for every backend that keeps iCalendar data.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use quarterdeck_contracts::Event;
use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};

use crate::change::OccurrenceId;
use crate::expand::{Occurrence, Window, occurrences};
use crate::row::{EventRow, Status};
use crate::rule::Budget;

/// Occurrences that one query may find.
const MAX_OCCURRENCES: usize = 20_000;

/// What stands in a window, gathered row by row within one budget.
pub struct EventCollector<'a> {
    window: Window,
    home: &'a TimeZone,
    budget: Budget,
    found: Vec<(Order, Event)>,
}

type Order = (Timestamp, Timestamp, String, String);

impl<'a> EventCollector<'a> {
    /// The end is not included.
    pub fn new(start: Timestamp, end: Timestamp, home: &'a TimeZone) -> Self {
        let window = Window { start, end };
        Self { window, home, budget: Budget::new(Budget::QUERY), found: Vec::new() }
    }

    /// Adds the occurrences of a row. An incomplete answer would show busy time as free, so too many are an error.
    pub fn add(&mut self, row: &EventRow, version: &str) -> Result<(), CapabilityError> {
        let found = occurrences(row, self.window, self.home, &mut self.budget);
        let found = found.map_err(|_| too_many_events(&row.calendar))?;
        for one in found {
            let order = (one.start, one.end, row.calendar.clone(), row.uid.clone());
            self.found.push((order, to_event(row, &one, version)));
        }
        if self.found.len() > MAX_OCCURRENCES {
            return Err(too_many_events(&row.calendar));
        }
        Ok(())
    }

    /// The events in the order of their start.
    pub fn finish(mut self) -> Vec<Event> {
        self.found.sort_by(|a, b| a.0.cmp(&b.0));
        self.found.into_iter().map(|(_, event)| event).collect()
    }
}

/// The event, or the one occurrence of it, that an id names. A cancelled one does not exist.
pub fn find_event(row: &EventRow, id: &OccurrenceId, version: &str, home: &TimeZone) -> Option<Event> {
    if row.uid != id.uid {
        return None;
    }
    let Some(original) = id.occurrence else {
        let details = &row.details;
        let (start, end) = (details.start.instant(home)?, details.end.instant(home)?);
        let is_one = !row.is_series() && details.status != Status::Cancelled;
        let one = Occurrence { start, end, original: start, details };
        return is_one.then(|| to_event(row, &one, version));
    };
    let moved = row.overrides.iter().find(|changed| changed.instead_of.instant(home) == Some(original));
    let begin = moved.map_or(Some(original), |moved| moved.details.start.instant(home))?;
    let window = Window { start: begin, end: begin.checked_add(SignedDuration::from_secs(1)).ok()? };
    let found = occurrences(row, window, home, &mut Budget::new(Budget::QUERY)).ok()?;
    let one = found.into_iter().find(|one| one.original == original && row.is_series())?;
    Some(to_event(row, &one, version))
}

fn to_event(row: &EventRow, one: &Occurrence<'_>, version: &str) -> Event {
    let details = one.details;
    Event {
        id: row.id_of(one.original),
        start: one.start.to_string(),
        end: one.end.to_string(),
        summary: details.summary.clone(),
        attendees: details.attendees.clone(),
        calendar: row.calendar.clone(),
        description: details.description.clone(),
        conference: details.conference.clone(),
        version: Some(version.to_owned()),
        sequence: row.sequence,
        private: false,
        changeable: false,
        booked_by: row.booked_by.clone(),
    }
}

fn too_many_events(calendar: &str) -> CapabilityError {
    let message = format!("the calendar {calendar:?} holds too much in this window; ask for a shorter one");
    CapabilityError::new(CapabilityErrorCode::InvalidArgument, message)
}
