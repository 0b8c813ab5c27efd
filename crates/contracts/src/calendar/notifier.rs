//! How attendees learn of an appointment.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Event;
use crate::Overlay;
use crate::handler::BoxFuture;

/// Tells attendees of a change, by a way that the configuration has chosen. Without one no invitation is sent, and the
/// answer says so and offers the `.ics`.
///
/// It is asked after the event was changed and cannot undo that, so it does not fail: what could not be sent is reported
/// as failed. What it writes to the overlay is committed with the record of the call or not at all; a notifier that sends
/// at once and is asked again for the same call must not send twice.
pub trait Notifier: Send + Sync {
    /// What [`Notified::how`] says: `email`.
    fn how(&self) -> &'static str;

    /// Tells every attendee of the event.
    fn notify(&self, notice: Notice, overlay: Arc<Overlay>) -> BoxFuture<Vec<Notified>>;
}

/// What attendees are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What has happened.
    pub kind: NoticeKind,
    /// The event as it is now, or as it was before it was cancelled.
    pub event: Event,
    /// The same as an iCalendar object (RFC 5546) with the fitting `METHOD`.
    pub ics: String,
    /// [`BookingOrigin::call_key`](super::BookingOrigin::call_key): the same for every attempt of one call.
    pub call_key: Arc<str>,
}

/// What has happened to an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum NoticeKind {
    Invitation,
    Update,
    Cancellation,
}

impl NoticeKind {
    /// The `METHOD` of RFC 5546.
    pub fn method(self) -> &'static str {
        match self {
            Self::Invitation | Self::Update => "REQUEST",
            Self::Cancellation => "CANCEL",
        }
    }
}

/// Who was told of a change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Invitations {
    /// One entry for each attendee; none if no invitation was sent.
    pub notified: Vec<Notified>,
    /// The event as a file that the user can pass on, where no invitation was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ics: Option<String>,
}

/// One attendee, and what came of telling them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Notified {
    /// Their e-mail address.
    pub address: String,
    /// By which way: `email`, `google_calendar`.
    pub how: String,
    /// How far it is.
    pub status: NoticeStatus,
}

/// How far a notice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum NoticeStatus {
    Sent,
    Queued,
    Failed,
}
