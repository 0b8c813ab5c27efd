//! Books an appointment, if the time is free.
//!
//! The time is looked at before the user is asked, and again when the booking is made. The calendar makes sure that of
//! two bookings which saw the same free time only one is kept, so looking first is no race.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use quarterdeck_contracts::handler::{Context, Precheck, calendar_create};
use quarterdeck_contracts::{CalendarInfo, NewEvent, ToolError};
use serde::{Deserialize, Serialize};

use crate::booking::{
    InvitationReport, Period, calendar_info, not_changed, notice_sentence, parse_period, read_clock,
    require_free,
};

/// Where bookings go.
const CALENDAR: &str = "primary";

/// The arguments, after the registry has checked them and filled in the defaults of `schema.json`.
#[derive(Debug, Deserialize)]
pub struct Args {
    pub title: String,
    pub start_time: String,
    pub end_time: String,
    pub attendees: Vec<String>,
    pub description: String,
    /// By default yes, where there is a provider of video calls.
    pub include_zoom_link: Option<bool>,
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
    pub invitations: InvitationReport,
}

/// Refuses what cannot be booked before the user is asked, and names the attendees.
pub async fn precheck(args: Args, context: Arc<dyn Context>) -> Result<Precheck, ToolError> {
    wanted(&args, &*context).await?;
    let info = calendar_info(&*context, CALENDAR).await?;
    let Args { title, start_time, end_time, attendees, .. } = &args;
    let attendees = attendees.join(", ");
    let told = notice_sentence(info.as_ref());
    let video = video_sentence(&args, info.as_ref());
    let preview = format!("Book “{title}” from {start_time} to {end_time} with {attendees}. {told}{video}");
    Ok(Precheck { preview: Some(preview), ..Precheck::default() })
}

pub async fn execute(args: Args, context: Arc<dyn Context>) -> Result<Booking, ToolError> {
    let period = wanted(&args, &*context).await?;
    let info = calendar_info(&*context, CALENDAR).await?;
    let event = NewEvent {
        conference: includes_link(&args, info.as_ref()),
        summary: args.title,
        start: period.start.to_string(),
        end: period.end.to_string(),
        attendees: args.attendees,
        description: args.description.clone(),
        calendar: CALENDAR.into(),
        only_if_free: true,
        conference_url: None,
    };
    let made = match calendar_create(&*context, event).await {
        Ok(made) => made,
        Err(error) => return Err(not_changed(&*context, error, Some((period, None))).await),
    };
    let event = made.event;
    Ok(Booking {
        event_id: event.id,
        title: event.summary,
        start_time: event.start,
        end_time: event.end,
        attendees: event.attendees,
        description: args.description,
        calendar: event.calendar,
        conference_link: event.conference,
        invitations: InvitationReport::new(made.invitations),
    })
}

/// The time that is asked for, if it can be booked and is free.
async fn wanted(args: &Args, context: &dyn Context) -> Result<Period, ToolError> {
    let period = parse_period(&args.start_time, &args.end_time, read_clock(context)?)?;
    require_free(context, period, None).await?;
    Ok(period)
}

/// Without a provider there is no link, whatever is asked for.
fn includes_link(args: &Args, info: Option<&CalendarInfo>) -> bool {
    let has_provider = info.is_some_and(|info| info.has_conferences);
    args.include_zoom_link.unwrap_or(true) && has_provider
}

fn video_sentence(args: &Args, info: Option<&CalendarInfo>) -> &'static str {
    match (includes_link(args, info), args.include_zoom_link) {
        (true, _) => " A link to a video call is added.",
        (false, Some(true)) => " There is no link to a video call: none is configured.",
        (false, _) => "",
    }
}
