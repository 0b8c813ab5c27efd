//! Lists events with their ids.
//!
//! What a client may know of an event the calendar has decided: of those that are not its own there is the time alone.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use quarterdeck_contracts::handler::{Context, calendar_events};
use quarterdeck_contracts::{Event, EventQuery, ToolError};
use serde::{Deserialize, Serialize};

use crate::range;

const MAX_EVENTS: usize = 50;

#[derive(Debug, Deserialize)]
pub struct Args {
    pub start_date: String,
    pub end_date: String,
    pub calendars: Vec<String>,
    pub query: String,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct EventList {
    /// In the order of their start.
    pub events: Vec<ListedEvent>,
    /// How many there are; more than are listed if it is true that there are more.
    pub total: usize,
    /// One sentence.
    pub summary: String,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct ListedEvent {
    /// Null for an event of which only the time may be known, like everything below.
    pub event_id: Option<String>,
    pub start: String,
    pub end: String,
    pub calendar: String,
    pub title: Option<String>,
    pub attendees: Option<Vec<String>>,
    pub conference_link: Option<String>,
    /// Whether it can be moved and cancelled.
    pub changeable: bool,
}

pub async fn execute(args: Args, context: Arc<dyn Context>) -> Result<EventList, ToolError> {
    let (start, end) = range::parse(&args.start_date, &args.end_date)?;
    let query =
        EventQuery { time_min: start.to_string(), time_max: end.to_string(), calendars: args.calendars };
    let words: Vec<String> = args.query.split_whitespace().map(str::to_lowercase).collect();
    let mut events = calendar_events(&*context, query).await?;
    events.retain(|event| fits(event, &words));
    let total = events.len();
    events.truncate(MAX_EVENTS);
    let events: Vec<ListedEvent> = events.into_iter().map(show).collect();
    Ok(EventList { summary: summary(&events, total), events, total })
}

/// Whether every word occurs in what may be known of an event.
fn fits(event: &Event, words: &[String]) -> bool {
    let text =
        [&event.summary, &event.description, &event.attendees.join(" ")].map(|text| text.to_lowercase());
    words.iter().all(|word| text.iter().any(|text| text.contains(word)))
}

fn show(event: Event) -> ListedEvent {
    let is_known = !event.private;
    ListedEvent {
        event_id: is_known.then_some(event.id),
        start: event.start,
        end: event.end,
        calendar: event.calendar,
        title: is_known.then_some(event.summary),
        attendees: is_known.then_some(event.attendees),
        conference_link: event.conference,
        changeable: event.changeable,
    }
}

fn summary(events: &[ListedEvent], total: usize) -> String {
    let own = events.iter().filter(|event| event.changeable).count();
    let plural = if total == 1 { "" } else { "s" };
    let more =
        if total > events.len() { format!(", the first {} listed", events.len()) } else { String::new() };
    format!("{total} event{plural}, {own} of which can be moved or cancelled{more}")
}
