//! Books an appointment, if the time is free.
//!
//! Everything is checked before anything is changed. The calendar makes sure that of two bookings which saw the same
//! free time only one is kept, so looking first is no race.

mod conflict;
mod period;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::Timestamp;
use quarterdeck_contracts::handler::{
    CapabilityError, CapabilityErrorCode, Context, calendar_create, calendar_events,
};
use quarterdeck_contracts::{ErrorType, Event, EventQuery, NewEvent, ToolError};
use serde::{Deserialize, Serialize};

use period::Period;

/// The arguments, after the registry has checked them and filled in the defaults of `schema.json`.
#[derive(Debug, Deserialize)]
pub struct Args {
    pub title: String,
    pub start_time: String,
    pub end_time: String,
    pub attendees: Vec<String>,
    pub description: String,
    pub include_zoom_link: bool,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Booking {
    pub event_id: String,
    pub title: String,
    pub start_time: String,
    pub end_time: String,
    pub attendees: Vec<String>,
    pub description: String,
    pub calendar: String,
    /// Where the video call is, if there is one.
    pub conference_link: Option<String>,
}

pub async fn execute(args: Args, context: Arc<dyn Context>) -> Result<Booking, ToolError> {
    let now = read_clock(&*context)?;
    let wanted = period::parse(&args.start_time, &args.end_time, now)?;

    let taken = busy(&*context, wanted).await?;
    if !taken.is_empty() {
        let around = conflict::search_window(wanted, now);
        let nearby = periods(&busy(&*context, around).await?)?;
        return Err(conflict::refuse(&taken, &conflict::nearest_free(wanted, around, nearby)));
    }
    let event = NewEvent {
        summary: args.title,
        start: wanted.start.to_string(),
        end: wanted.end.to_string(),
        attendees: args.attendees,
        description: args.description.clone(),
        conference: args.include_zoom_link,
        calendar: "primary".into(),
        only_if_free: true,
        conference_url: None,
    };
    let event = calendar_create(&*context, event).await.map_err(not_booked)?.event;
    Ok(Booking {
        event_id: event.id,
        title: event.summary,
        start_time: event.start,
        end_time: event.end,
        attendees: event.attendees,
        description: args.description,
        calendar: event.calendar,
        conference_link: event.conference,
    })
}

/// What takes up time in a period, in any of the owner's calendars.
async fn busy(context: &dyn Context, period: Period) -> Result<Vec<Event>, CapabilityError> {
    let Period { start, end } = period;
    let query = EventQuery { time_min: start.to_string(), time_max: end.to_string(), calendars: Vec::new() };
    calendar_events(context, query).await
}

fn periods(events: &[Event]) -> Result<Vec<Period>, ToolError> {
    let malformed = |_| ToolError::new(ErrorType::Internal, "the calendar gave a time that is none");
    let period = |event: &Event| {
        Ok(Period {
            start: event.start.parse().map_err(malformed)?,
            end: event.end.parse().map_err(malformed)?,
        })
    };
    events.iter().map(period).collect()
}

/// A calendar that lives elsewhere may have booked before its answer was lost.
fn not_booked(error: CapabilityError) -> ToolError {
    let unknown = error.code == CapabilityErrorCode::Timeout;
    ToolError { partial_side_effects: Some(unknown), ..error.into() }
}

fn read_clock(context: &dyn Context) -> Result<Timestamp, ToolError> {
    Timestamp::try_from(context.now())
        .map_err(|_| ToolError::new(ErrorType::Internal, "the clock is outside the calendar's range"))
}
