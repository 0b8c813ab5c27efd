//! Events, and what can be done with one.

use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::Invitations;

/// One occurrence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// What it is known by in its calendar. An occurrence of a series has an id of its own.
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
    /// What it is about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Where its video call is, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conference: Option<String>,
    /// Changes whenever the event does. A change that names it fails if the event has changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How often it has been changed, as invitations count it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sequence: u32,
    /// Whether the client may know no more than that the time is taken: everything but times and calendar is empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
    /// Whether the client may move or cancel it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changeable: bool,
    /// The client whose booking it is, if it is one. Backends say it; handlers are not told.
    #[serde(skip)]
    pub booked_by: Option<Arc<str>>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Names an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EventRef {
    /// [`Event::id`].
    pub id: String,
    /// Which calendar it stands in. Every one is searched if it is not named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calendar: Option<String>,
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
    /// Whether time that is taken in this calendar is a `Conflict`, judged at the last moment. The caller looks at the
    /// other calendars.
    #[serde(default)]
    pub only_if_free: bool,
    /// The link that a [`ConferenceProvider`](super::ConferenceProvider) has made for it. Handlers cannot name one.
    #[serde(skip)]
    pub conference_url: Option<String>,
}

/// Another time for an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reschedule {
    /// [`Event::id`].
    pub id: String,
    /// Which calendar it stands in; found out if it is not named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calendar: Option<String>,
    /// The version that was seen ([`Event::version`]); any, if it is not named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// When it begins (RFC 3339).
    pub start: String,
    /// When it ends (RFC 3339).
    pub end: String,
    /// As in [`NewEvent::only_if_free`]; the event itself is not in its own way.
    #[serde(default)]
    pub only_if_free: bool,
}

/// An event that shall not take place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cancellation {
    /// [`Event::id`].
    pub id: String,
    /// Which calendar it stands in; found out if it is not named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calendar: Option<String>,
    /// The version that was seen; any, if it is not named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether attendees are told, where there is a way.
    #[serde(default = "yes")]
    pub notify: bool,
}

/// Who makes a change, by which call, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BookingOrigin {
    /// The client, stable across sessions.
    pub client_id: Arc<str>,
    /// The session and the idempotency key of the call: the same for every attempt of one call, and for no other call.
    pub call_key: Arc<str>,
    /// The time, as the call sees it.
    pub now: SystemTime,
}

/// What came of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedEvent {
    /// The event as it is now, or as it was before it was cancelled.
    #[serde(flatten)]
    pub event: Event,
    /// Who was told of it.
    #[serde(default)]
    pub invitations: Invitations,
}

impl From<Event> for ChangedEvent {
    /// A change without invitations.
    fn from(event: Event) -> Self {
        Self { event, invitations: Invitations::default() }
    }
}

fn primary() -> String {
    "primary".into()
}

fn yes() -> bool {
    true
}
