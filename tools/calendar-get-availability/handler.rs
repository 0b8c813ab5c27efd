//! Finds busy and free times in the calendars.
//!
//! Busy times of all calendars are merged before the gaps are computed, so that two meetings at once are one busy
//! period, and everything is cut to the range that was asked for.

mod periods;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use quarterdeck_contracts::handler::{Context, calendar_events};
use quarterdeck_contracts::{ErrorType, Event, EventQuery, ToolError};
use serde::{Deserialize, Serialize};

use crate::range;
use periods::{Period, gaps, merge};

/// The arguments, after the registry has checked them and filled in the defaults of `schema.json`.
#[derive(Debug, Deserialize)]
pub struct Args {
    pub start_date: String,
    pub end_date: String,
    pub calendars: Vec<String>,
    pub include_details: bool,
    pub min_duration_minutes: u32,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Availability {
    pub date_range: DateRange,
    /// One by one, in the order of their start.
    pub existing_events: Vec<BusyEvent>,
    pub available_slots: Vec<Slot>,
    /// One sentence.
    pub summary: String,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct DateRange {
    pub start: String,
    pub end: String,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct BusyEvent {
    pub start: String,
    pub end: String,
    pub status: &'static str,
    pub calendar: String,
    /// Only with details, and only of events that this client may know about.
    pub title: Option<String>,
    /// How many take part; likewise.
    pub attendees: Option<usize>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Slot {
    pub start: String,
    pub end: String,
    pub duration_minutes: i64,
}

pub async fn execute(args: Args, context: Arc<dyn Context>) -> Result<Availability, ToolError> {
    let (start, end) = range::parse(&args.start_date, &args.end_date)?;
    let range = Period { start, end };
    let query = EventQuery {
        time_min: range.start.to_string(),
        time_max: range.end.to_string(),
        calendars: args.calendars,
    };
    let mut events = Vec::new();
    for event in calendar_events(&*context, query).await? {
        events.extend(within(range, event)?);
    }

    let busy = merge(events.iter().map(|(period, _)| *period));
    let free = gaps(range, &busy);
    let slots: Vec<Slot> = free.iter().filter_map(|gap| slot(gap, args.min_duration_minutes)).collect();
    Ok(Availability {
        date_range: DateRange { start: range.start.to_string(), end: range.end.to_string() },
        summary: summary(busy.len(), &slots),
        existing_events: events
            .into_iter()
            .map(|(period, event)| show(period, event, args.include_details))
            .collect(),
        available_slots: slots,
    })
}

/// The part of an event that lies in the range, if any does.
fn within(range: Period, event: Event) -> Result<Option<(Period, Event)>, ToolError> {
    let malformed = |_| ToolError::new(ErrorType::Internal, "the calendar gave a time that is none");
    let start = event.start.parse().map_err(malformed)?;
    let end = event.end.parse().map_err(malformed)?;
    Ok(Period { start, end }.cut_to(range).map(|period| (period, event)))
}

fn show(period: Period, event: Event, details: bool) -> BusyEvent {
    let shows = details && !event.private;
    BusyEvent {
        start: period.start.to_string(),
        end: period.end.to_string(),
        status: "busy",
        calendar: event.calendar,
        title: shows.then_some(event.summary),
        attendees: shows.then_some(event.attendees.len()),
    }
}

/// A gap as an offer, if it is long enough.
fn slot(gap: &Period, at_least_minutes: u32) -> Option<Slot> {
    let minutes = gap.length().as_mins();
    (minutes >= i64::from(at_least_minutes)).then(|| Slot {
        start: gap.start.to_string(),
        end: gap.end.to_string(),
        duration_minutes: minutes,
    })
}

fn summary(busy: usize, slots: &[Slot]) -> String {
    let minutes: i64 = slots.iter().map(|slot| slot.duration_minutes).sum();
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    format!(
        "{busy} busy period{}, {} available slot{} ({minutes} minutes total)",
        plural(busy),
        slots.len(),
        plural(slots.len()),
    )
}
