//! The calendar's methods as handlers call them: JSON in, JSON out, the same for every backend.

use std::sync::Arc;

use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::viewer::no_such_event;
use super::{
    BookingOrigin, Calendar, CalendarViewer, Cancellation, ChangedEvent, Event, EventQuery, EventRef,
    NewEvent, Reschedule,
};
use crate::Overlay;
use crate::handler::{CapabilityError, CapabilityErrorCode, CapabilityScope};

/// What `context.calendar` can do, by the names that handlers use.
pub const CALENDAR_METHODS: [&str; 7] =
    ["getCalendars", "getFreeBusy", "getEvents", "getEvent", "createEvent", "moveEvent", "cancelEvent"];

/// Answers one use of the capability `calendar`, for a client and with what it may see and change.
///
/// `getFreeBusy` and `getEvents` give the same strings for the same event, neither merged nor cut.
pub async fn answer_calendar(
    calendar: &dyn Calendar,
    viewer: &CalendarViewer,
    scope: &dyn CapabilityScope,
    method: &str,
    args: &[Value],
) -> Result<Value, CapabilityError> {
    let overlay = scope.overlay();
    match method {
        "getCalendars" => Ok(json!(calendar.list())),
        "getFreeBusy" => free_busy(calendar, viewer, overlay, argument(method, args)?).await,
        "getEvents" => {
            let query: EventQuery = argument(method, args)?;
            viewer.check(&query.calendars)?;
            let events = calendar.events(query, overlay).await?;
            Ok(events.into_iter().map(|event| json!(viewer.shown(event))).collect())
        }
        "getEvent" => {
            let event = find(calendar, viewer, argument(method, args)?, overlay).await?;
            let shown = viewer.shown(event);
            if shown.private { Err(no_such_event()) } else { Ok(json!(shown)) }
        }
        "createEvent" | "moveEvent" | "cancelEvent" => {
            scope.require_writes(&format!("calendar.{method}"))?;
            let changed = match method {
                "createEvent" => create(calendar, viewer, scope, argument(method, args)?).await,
                "moveEvent" => reschedule(calendar, viewer, scope, argument(method, args)?).await,
                _ => cancel(calendar, viewer, scope, argument(method, args)?).await,
            };
            let ChangedEvent { event, invitations } = changed?;
            Ok(json!(ChangedEvent { event: Event { changeable: true, ..event }, invitations }))
        }
        unknown => {
            let known = CALENDAR_METHODS.join(", ");
            Err(invalid(format!("calendar.{unknown} does not exist; there are {known}")))
        }
    }
}

async fn create(
    calendar: &dyn Calendar,
    viewer: &CalendarViewer,
    scope: &dyn CapabilityScope,
    new: NewEvent,
) -> Result<ChangedEvent, CapabilityError> {
    viewer.check(std::slice::from_ref(&new.calendar))?;
    let origin = begin(calendar, viewer, scope, &new.calendar);
    calendar.create(new, origin, scope.overlay()).await
}

async fn reschedule(
    calendar: &dyn Calendar,
    viewer: &CalendarViewer,
    scope: &dyn CapabilityScope,
    mut change: Reschedule,
) -> Result<ChangedEvent, CapabilityError> {
    let wanted = EventRef { id: change.id.clone(), calendar: change.calendar.take() };
    let event = viewer.own(find(calendar, viewer, wanted, scope.overlay()).await?)?;
    change.version = current(&event, change.version)?;
    let origin = begin(calendar, viewer, scope, &event.calendar);
    change.calendar = Some(event.calendar);
    calendar.reschedule(change, origin, scope.overlay()).await
}

async fn cancel(
    calendar: &dyn Calendar,
    viewer: &CalendarViewer,
    scope: &dyn CapabilityScope,
    mut cancellation: Cancellation,
) -> Result<ChangedEvent, CapabilityError> {
    let wanted = EventRef { id: cancellation.id.clone(), calendar: cancellation.calendar.take() };
    let event = viewer.own(find(calendar, viewer, wanted, scope.overlay()).await?)?;
    cancellation.version = current(&event, cancellation.version)?;
    let origin = begin(calendar, viewer, scope, &event.calendar);
    cancellation.calendar = Some(event.calendar);
    calendar.cancel(cancellation, origin, scope.overlay()).await
}

/// Who makes the change. One of a calendar elsewhere is marked before it is made: afterwards may be too late.
fn begin(
    calendar: &dyn Calendar,
    viewer: &CalendarViewer,
    scope: &dyn CapabilityScope,
    name: &str,
) -> BookingOrigin {
    if !calendar.is_in_store(name) {
        scope.mark_outside_effect();
    }
    BookingOrigin { client_id: viewer.client_id.clone(), call_key: scope.call_key(), now: scope.now() }
}

/// Finds an event in a calendar that the client may name.
async fn find(
    calendar: &dyn Calendar,
    viewer: &CalendarViewer,
    event: EventRef,
    overlay: Arc<Overlay>,
) -> Result<Event, CapabilityError> {
    viewer.check(event.calendar.as_slice())?;
    let found = calendar.find(event, overlay).await.map_err(|error| match error.code {
        CapabilityErrorCode::NotFound => no_such_event(),
        _ => error,
    })?;
    viewer.check(std::slice::from_ref(&found.calendar)).map_err(|_| no_such_event())?;
    Ok(found)
}

/// The version to change: the one that was seen, which must be the one that is there now.
fn current(event: &Event, seen: Option<String>) -> Result<Option<String>, CapabilityError> {
    if seen.is_some() && seen != event.version {
        let message = "the event has changed since it was looked up";
        return Err(CapabilityError::new(CapabilityErrorCode::Conflict, message));
    }
    Ok(event.version.clone())
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
