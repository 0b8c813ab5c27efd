//! Events of a case file (`given.calendar`).

use serde::Deserialize;
use serde_json::Value;

use crate::moment::Moment;
use crate::row::{Details, EventRow, Status};
use crate::rule::Rule;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GivenEvent {
    id: Option<String>,
    start: Moment,
    end: Moment,
    #[serde(default, alias = "title")]
    summary: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    attendees: Vec<String>,
    #[serde(default = "primary")]
    calendar: String,
    rrule: Option<String>,
    #[serde(default)]
    status: Status,
    #[serde(default)]
    own: bool,
}

fn primary() -> String {
    "primary".into()
}

/// The rows of the table `calendar` for the events of a case file's `given.calendar`, with their keys. An event is
/// `{start, end, summary?, description?, attendees?, calendar?, rrule?, status?, id?, own?}`; a time is RFC 3339, a whole
/// day, or a clock time in a zone (`2026-01-13T09:00:00[Europe/Berlin]`), and an event of its `own` is one that `client` has
/// booked.
pub fn parse_given_events(events: &[Value], client: &str) -> Result<Vec<(String, Value)>, String> {
    let row = |(index, event): (usize, &Value)| {
        let row = read(index, event, client).map_err(|fault| format!("given.calendar[{index}] {fault}"))?;
        Ok((row.key(), row.to_value()))
    };
    events.iter().enumerate().map(row).collect()
}

fn read(index: usize, event: &Value, client: &str) -> Result<EventRow, String> {
    let given = GivenEvent::deserialize(event).map_err(|error| format!("is not an event: {error}"))?;
    let rule = given.rrule.as_deref().map(|rule| rule.strip_prefix("RRULE:").unwrap_or(rule));
    if let Some(rule) = rule {
        Rule::parse(rule)?;
    }
    let utc = jiff::tz::TimeZone::UTC;
    if given.start.instant(&utc) >= given.end.instant(&utc) {
        return Err("does not end after it begins".into());
    }
    let details = Details {
        start: given.start,
        end: given.end,
        summary: given.summary,
        description: given.description,
        location: String::new(),
        attendees: given.attendees,
        conference: None,
        status: given.status,
        free: false,
    };
    let uid = given.id.unwrap_or_else(|| format!("given-{}", index + 1));
    let mut row = EventRow::single(uid, given.calendar, details);
    row.rules.extend(rule.map(str::to_owned));
    row.booked_by = given.own.then(|| client.into());
    Ok(row)
}
