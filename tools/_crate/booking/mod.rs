//! What booking, moving and cancelling have in common: the time that is wanted, what is in its way, and what the user is
//! told about attendees.

mod changed;
mod conflict;
mod invitations;
mod period;

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use quarterdeck_contracts::handler::{
    CapabilityError, CapabilityErrorCode, Context, calendar_event, calendar_events, calendar_list,
};
use quarterdeck_contracts::{CalendarInfo, ErrorType, Event, EventQuery, EventRef, ToolError};

pub(crate) use changed::ChangedBooking;
pub(crate) use invitations::{InvitationReport, notice_sentence};
pub(crate) use period::{Period, parse as parse_period};

/// Refuses a time that is taken in any of the owner's calendars, with the nearest free ones. An event that is moved is not
/// in its own way.
pub(crate) async fn require_free(
    context: &dyn Context,
    wanted: Period,
    moved: Option<&str>,
) -> Result<(), ToolError> {
    let taken = others(busy(context, wanted).await?, moved);
    if taken.is_empty() {
        return Ok(());
    }
    let around = conflict::search_window(wanted, read_clock(context)?);
    let nearby = periods(&others(busy(context, around).await?, moved))?;
    Err(conflict::refuse(&taken, &conflict::nearest_free(wanted, around, nearby)))
}

/// A change that the calendar did not make. Of a time that was taken at the last moment it says what is free.
pub(crate) async fn not_changed(
    context: &dyn Context,
    error: CapabilityError,
    wanted: Option<(Period, Option<&str>)>,
) -> ToolError {
    if let (CapabilityErrorCode::Conflict, Some((wanted, moved))) = (error.code, wanted)
        && let Err(taken) = require_free(context, wanted, moved).await
        && taken.kind == ErrorType::Conflict
    {
        return taken;
    }
    let refusal = ToolError::from(error);
    let refusal = match refusal.kind {
        ErrorType::Conflict => refusal.with_suggestion("Look it up again, tell the user, and ask anew."),
        _ => refusal,
    };
    // What may have been done says so itself.
    let done = refusal.partial_side_effects.unwrap_or(false);
    ToolError { partial_side_effects: Some(done), ..refusal }
}

/// The calendar of a name, as it is configured.
pub(crate) async fn calendar_info(
    context: &dyn Context,
    name: &str,
) -> Result<Option<CalendarInfo>, CapabilityError> {
    Ok(calendar_list(context).await?.into_iter().find(|info| info.name == name))
}

/// An event in words, for the user who approves a change of it.
pub(crate) fn describe(event: &Event) -> String {
    let with = if event.attendees.is_empty() {
        String::new()
    } else {
        format!(" with {}", event.attendees.join(", "))
    };
    format!("“{}” from {} to {}{with}", event.summary, event.start, event.end)
}

pub(crate) fn read_clock(context: &dyn Context) -> Result<Timestamp, ToolError> {
    Timestamp::try_from(context.now())
        .map_err(|_| ToolError::new(ErrorType::Internal, "the clock is outside the calendar's range"))
}

/// What takes up time in a period, in any of the owner's calendars.
async fn busy(context: &dyn Context, period: Period) -> Result<Vec<Event>, CapabilityError> {
    let Period { start, end } = period;
    let query = EventQuery { time_min: start.to_string(), time_max: end.to_string(), calendars: Vec::new() };
    calendar_events(context, query).await
}

fn others(mut events: Vec<Event>, moved: Option<&str>) -> Vec<Event> {
    events.retain(|event| moved.is_none_or(|moved| event.id != moved));
    events
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

/// The event of an id, if this client may change it.
pub(crate) async fn find_changeable(context: &dyn Context, event: EventRef) -> Result<Event, ToolError> {
    let found = calendar_event(context, event).await.map_err(|error| {
        let missing = error.code == CapabilityErrorCode::NotFound;
        let refusal = ToolError { partial_side_effects: Some(false), ..error.into() };
        let suggestion = "Look up the ids of the user's bookings with calendar_list_events.";
        if missing { refusal.with_suggestion(suggestion) } else { refusal }
    })?;
    if found.changeable {
        return Ok(found);
    }
    let message = "This event is not a booking of this client, so it cannot be changed here.";
    let refusal = ToolError::new(ErrorType::Auth, message);
    Err(ToolError { partial_side_effects: Some(false), ..refusal })
}
