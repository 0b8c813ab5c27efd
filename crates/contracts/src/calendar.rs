//! The calendar: who is busy when, and a new appointment.

mod methods;
mod viewer;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Overlay;
use crate::handler::{BoxFuture, CapabilityError};

pub use methods::{CALENDAR_METHODS, answer_calendar};
pub use viewer::CalendarViewer;

/// A site's set of calendars, whatever keeps them.
///
/// Failures say what the caller can do: [`AuthError`](crate::handler::CapabilityErrorCode::AuthError) when the user
/// must sign in again, `RateLimit` with a time, `Timeout` for what may work a moment later, `NotFound` for a calendar
/// that does not exist, `InvalidArgument` for what makes no sense.
pub trait Calendar: Send + Sync {
    /// Whether [`Calendar::create`] writes to the overlay only, so that dropping the overlay undoes it.
    fn is_in_store(&self) -> bool {
        false
    }

    /// What takes up time in a window: the events that touch it, recurring ones expanded, in the order of their start,
    /// neither merged nor cut. Cancelled events and those marked as free are not among them.
    fn events(
        &self,
        query: EventQuery,
        overlay: Arc<Overlay>,
    ) -> BoxFuture<Result<Vec<Event>, CapabilityError>>;

    /// Books an appointment for a client, whose id is kept with it ([`Event::booked_by`]). A calendar in our own store
    /// writes to the overlay, so that the booking and the record of the call are one commit; one that lives elsewhere
    /// books at once.
    fn create(
        &self,
        event: NewEvent,
        booked_by: Arc<str>,
        overlay: Arc<Overlay>,
    ) -> BoxFuture<Result<Event, CapabilityError>>;
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

/// One occurrence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// What it is known by; occurrences of one recurring event share it.
    pub id: String,
    /// When it begins (RFC 3339, UTC).
    pub start: String,
    /// When it ends (RFC 3339, UTC).
    pub end: String,
    /// Its title.
    pub summary: String,
    /// Who takes part, as e-mail addresses.
    pub attendees: Vec<String>,
    /// Which calendar it stands in.
    pub calendar: String,
    /// Where its video call is, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conference: Option<String>,
    /// Whether the client may know no more than that the time is taken: everything but times and calendar is empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
    /// The client whose booking it is, if it is one. Backends say it; handlers are not told.
    #[serde(skip)]
    pub booked_by: Option<Arc<str>>,
}

/// An appointment to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewEvent {
    /// Its title.
    pub summary: String,
    /// When it begins (RFC 3339).
    pub start: String,
    /// When it ends (RFC 3339).
    pub end: String,
    /// Who takes part, as e-mail addresses.
    #[serde(default)]
    pub attendees: Vec<String>,
    /// What it is about.
    #[serde(default)]
    pub description: String,
    /// Whether to add a link to a video call, where one is configured.
    #[serde(default)]
    pub conference: bool,
    /// Which calendar it goes to; the owner's own one by default.
    #[serde(default = "primary")]
    pub calendar: String,
}

fn primary() -> String {
    "primary".into()
}
