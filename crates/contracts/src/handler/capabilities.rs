//! Capabilities with types, for handlers written in Rust. Each is one [`Context::request`].

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{CapabilityCall, CapabilityError, CapabilityErrorCode, Context};
use crate::{
    CalendarInfo, Cancellation, Capability, ChangedEvent, Event, EventQuery, EventRef, KnowledgeQuery,
    KnowledgeRecord, NewEvent, Reschedule, SearchResults,
};

/// The configured calendars: `context.calendar.getCalendars`.
pub async fn calendar_list(context: &dyn Context) -> Result<Vec<CalendarInfo>, CapabilityError> {
    request(context, Capability::CALENDAR, "getCalendars", &json!({})).await
}

/// One event by its id: `context.calendar.getEvent`.
pub async fn calendar_event(context: &dyn Context, event: EventRef) -> Result<Event, CapabilityError> {
    request(context, Capability::CALENDAR, "getEvent", &event).await
}

/// The events that touch a window: `context.calendar.getEvents`.
pub async fn calendar_events(
    context: &dyn Context,
    query: EventQuery,
) -> Result<Vec<Event>, CapabilityError> {
    request(context, Capability::CALENDAR, "getEvents", &query).await
}

/// Books an appointment: `context.calendar.createEvent`.
pub async fn calendar_create(
    context: &dyn Context,
    event: NewEvent,
) -> Result<ChangedEvent, CapabilityError> {
    request(context, Capability::CALENDAR, "createEvent", &event).await
}

/// Moves an event to another time: `context.calendar.moveEvent`.
pub async fn calendar_move(
    context: &dyn Context,
    change: Reschedule,
) -> Result<ChangedEvent, CapabilityError> {
    request(context, Capability::CALENDAR, "moveEvent", &change).await
}

/// Cancels an event: `context.calendar.cancelEvent`.
pub async fn calendar_cancel(
    context: &dyn Context,
    cancellation: Cancellation,
) -> Result<ChangedEvent, CapabilityError> {
    request(context, Capability::CALENDAR, "cancelEvent", &cancellation).await
}

/// What answers a question, with whole records: `context.kb.query`.
pub async fn kb_find(context: &dyn Context, query: KnowledgeQuery) -> Result<SearchResults, CapabilityError> {
    request(context, Capability::KB, "find", &query).await
}

/// Records by their ids, in that order: `context.kb.get`.
pub async fn kb_get(context: &dyn Context, ids: &[String]) -> Result<Vec<KnowledgeRecord>, CapabilityError> {
    request(context, Capability::KB, "get", &ids).await
}

async fn request<T: DeserializeOwned>(
    context: &dyn Context,
    capability: Capability,
    method: &str,
    argument: &impl Serialize,
) -> Result<T, CapabilityError> {
    let name = format!("{capability}.{method}");
    let call = CapabilityCall { capability, method: method.to_owned(), args: vec![json!(argument)] };
    let answer: Value = context.request(call).await?;
    serde_json::from_value(answer).map_err(|error| {
        // A fault of the backend, and one that may be gone with its next answer.
        let message = format!("{name} gave a malformed answer: {error}");
        CapabilityError::new(CapabilityErrorCode::NotAvailable, message)
    })
}
