//! Moves a booking to another time, if that is free.
//!
//! What the user approves is the event as it was shown to them: if it has changed by the time it is moved, it is not
//! moved.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use quarterdeck_contracts::handler::{Context, Precheck, calendar_move};
use quarterdeck_contracts::{Event, EventRef, Reschedule, ToolError};
use serde::Deserialize;
use serde_json::json;

use crate::booking::{
    ChangedBooking, Period, calendar_info, describe, not_changed, notice_sentence, parse_period, read_clock,
    require_free,
};

#[derive(Debug, Deserialize)]
pub struct Args {
    pub event_id: String,
    pub start_time: String,
    pub end_time: String,
}

/// Finds the event and names it, and refuses a time that is taken.
pub async fn precheck(args: Args, context: Arc<dyn Context>) -> Result<Precheck, ToolError> {
    let event = find(&args.event_id, &*context).await?;
    wanted(&args, &event, &*context).await?;
    let info = calendar_info(&*context, &event.calendar).await?;
    let told = if event.attendees.is_empty() { String::new() } else { notice_sentence(info.as_ref()) };
    let (start, end) = (&args.start_time, &args.end_time);
    let preview = format!("Move {} to {start} – {end}. {told}", describe(&event));
    let seen = json!({ "version": event.version, "calendar": event.calendar });
    Ok(Precheck { preview: Some(preview.trim_end().to_owned()), seen })
}

pub async fn execute(args: Args, context: Arc<dyn Context>) -> Result<ChangedBooking, ToolError> {
    let event = find(&args.event_id, &*context).await?;
    let period = wanted(&args, &event, &*context).await?;
    let seen = &context.facts().seen;
    let change = Reschedule {
        id: args.event_id,
        calendar: Some(event.calendar),
        version: seen["version"].as_str().map(str::to_owned).or(event.version),
        start: period.start.to_string(),
        end: period.end.to_string(),
        only_if_free: true,
    };
    match calendar_move(&*context, change).await {
        Ok(moved) => Ok(moved.into()),
        Err(error) => Err(not_changed(&*context, error, Some((period, Some(&event.id)))).await),
    }
}

async fn find(id: &str, context: &dyn Context) -> Result<Event, ToolError> {
    crate::booking::find_changeable(context, EventRef { id: id.to_owned(), calendar: None }).await
}

/// The new time, if it can be booked and is free but for the event itself.
async fn wanted(args: &Args, event: &Event, context: &dyn Context) -> Result<Period, ToolError> {
    let period = parse_period(&args.start_time, &args.end_time, read_clock(context)?)?;
    require_free(context, period, Some(&event.id)).await?;
    Ok(period)
}
