//! The calendars: who is busy when, and appointments that are made, moved and cancelled.

mod conference;
mod event;
mod methods;
mod notifier;
mod viewer;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Overlay;
use crate::handler::{BoxFuture, CapabilityError};

pub use conference::{ConferenceProvider, ConferenceRequest};
pub use event::{BookingOrigin, Cancellation, ChangedEvent, Event, EventRef, NewEvent, Reschedule};
pub use methods::{CALENDAR_METHODS, answer_calendar};
pub use notifier::{Invitations, Notice, NoticeKind, NoticeStatus, Notified, Notifier};
pub use viewer::CalendarViewer;

/// One calendar or several, whatever keeps them. The runtime is given one that knows every configured name and passes each
/// request on to the backend that the configuration has chosen for it; backends implement the same trait.
///
/// Failures say what the caller can do: [`AuthError`](crate::handler::CapabilityErrorCode::AuthError) when the backend or
/// the client must sign in again, `RateLimit` with a time, `Timeout` or `NotAvailable` for what may work a moment later
/// and has changed nothing, `NotFound` for a calendar or an event that does not exist, `Conflict` for an event that has
/// changed since it was read or for time that is taken, `InvalidArgument` for what makes no sense. A change whose answer
/// was lost is `OutcomeUnknown`, and nothing else is: it may have been made.
pub trait Calendar: Send + Sync {
    /// Whether changes of a calendar are written to the overlay only, so that dropping the overlay undoes them.
    fn is_in_store(&self, _calendar: &str) -> bool {
        false
    }

    /// The calendars, in their configured order. A booking goes to the first unless it says otherwise.
    fn list(&self) -> Vec<CalendarInfo>;

    /// What takes up time in a window: the events that touch it, recurring ones expanded, in the order of their start,
    /// neither merged nor cut. Cancelled events and those marked as free are not among them.
    fn events(
        &self,
        query: EventQuery,
        overlay: Arc<Overlay>,
    ) -> BoxFuture<Result<Vec<Event>, CapabilityError>>;

    /// One event by its id, as it is now; `NotFound` if there is none. With a calendar it is looked for there alone.
    fn find(&self, event: EventRef, overlay: Arc<Overlay>) -> BoxFuture<Result<Event, CapabilityError>>;

    /// Books an appointment for a client, whose id is kept with it ([`Event::booked_by`]). A calendar in our own store
    /// writes to the overlay, so that the booking and the record of the call are one commit; one that lives elsewhere
    /// books at once, under an id made from [`BookingOrigin::call_key`], so that the same booking is never made twice.
    fn create(
        &self,
        event: NewEvent,
        origin: BookingOrigin,
        overlay: Arc<Overlay>,
    ) -> BoxFuture<Result<ChangedEvent, CapabilityError>>;

    /// Moves an event to another time. `Conflict` if it is not the version that is named.
    fn reschedule(
        &self,
        change: Reschedule,
        origin: BookingOrigin,
        overlay: Arc<Overlay>,
    ) -> BoxFuture<Result<ChangedEvent, CapabilityError>>;

    /// Cancels an event; of a series, the one occurrence that the id names. Answers with the event as it was.
    fn cancel(
        &self,
        cancellation: Cancellation,
        origin: BookingOrigin,
        overlay: Arc<Overlay>,
    ) -> BoxFuture<Result<ChangedEvent, CapabilityError>>;
}

/// What may be known of a calendar before it is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CalendarInfo {
    /// Its configured name: `primary`.
    pub name: String,
    /// What keeps it: `local`, `caldav`, `google`.
    pub backend: String,
    /// Whether a booking can get a link to a video call.
    pub has_conferences: bool,
    /// How attendees are told of changes (`email`), if they are.
    pub notifies_by: Option<String>,
}

/// Which events to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventQuery {
    /// The first moment (RFC 3339).
    pub time_min: String,
    /// The moment after the last (RFC 3339).
    pub time_max: String,
    /// Which calendars: `primary`, `team`, `personal`. None named means all of them.
    #[serde(default)]
    pub calendars: Vec<String>,
}
