//! The calendar's methods as handlers call them: JSON in, JSON out, the same for every backend.

use std::sync::Arc;

use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{Calendar, CalendarViewer, EventQuery, NewEvent};
use crate::Overlay;
use crate::handler::{CapabilityError, CapabilityErrorCode};

/// What `context.calendar` can do, by the names that handlers use.
pub const CALENDAR_METHODS: [&str; 3] = ["getFreeBusy", "getEvents", "createEvent"];

/// Answers one use of the capability `calendar`, for a client and with what it may see.
///
/// `getFreeBusy` and `getEvents` give the same strings for the same event, neither merged nor cut.
pub async fn answer_calendar(
    calendar: &dyn Calendar,
    viewer: &CalendarViewer,
    overlay: Arc<Overlay>,
    method: &str,
    args: &[Value],
) -> Result<Value, CapabilityError> {
    match method {
        "getFreeBusy" => free_busy(calendar, viewer, overlay, argument(method, args)?).await,
        "getEvents" => {
            let query: EventQuery = argument(method, args)?;
            viewer.check(&query.calendars)?;
            let events = calendar.events(query, overlay).await?;
            Ok(events.into_iter().map(|event| json!(viewer.shown(event))).collect())
        }
        "createEvent" => {
            let new: NewEvent = argument(method, args)?;
            viewer.check(std::slice::from_ref(&new.calendar))?;
            Ok(json!(calendar.create(new, viewer.client_id.clone(), overlay).await?))
        }
        unknown => {
            let known = CALENDAR_METHODS.join(", ");
            Err(invalid(format!("calendar.{unknown} does not exist; there are {known}")))
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FreeBusyQuery {
    time_min: String,
    time_max: String,
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    id: String,
}

async fn free_busy(
    calendar: &dyn Calendar,
    viewer: &CalendarViewer,
    overlay: Arc<Overlay>,
    query: FreeBusyQuery,
) -> Result<Value, CapabilityError> {
    let FreeBusyQuery { time_min, time_max, items } = query;
    let calendars: Vec<String> = items.into_iter().map(|item| item.id).collect();
    viewer.check(&calendars)?;
    let mut busy: IndexMap<String, Vec<Value>> =
        calendars.iter().map(|id| (id.clone(), Vec::new())).collect();
    for event in calendar.events(EventQuery { time_min, time_max, calendars }, overlay).await? {
        busy.entry(event.calendar).or_default().push(json!({ "start": event.start, "end": event.end }));
    }
    let calendars: Map<String, Value> =
        busy.into_iter().map(|(id, busy)| (id, json!({ "busy": busy }))).collect();
    Ok(json!({ "calendars": calendars }))
}

/// The one argument that every method takes.
fn argument<T: DeserializeOwned>(method: &str, args: &[Value]) -> Result<T, CapabilityError> {
    let [argument] = args else {
        return Err(invalid(format!("calendar.{method} takes one object, not {} arguments", args.len())));
    };
    if !argument.is_object() {
        return Err(invalid(format!("calendar.{method} takes an object")));
    }
    T::deserialize(argument).map_err(|error| invalid(format!("calendar.{method}: {error}")))
}

fn invalid(message: String) -> CapabilityError {
    CapabilityError::new(CapabilityErrorCode::InvalidArgument, message)
}
