//! The event after a change, as moving and cancelling answer with it.

use quarterdeck_contracts::ChangedEvent;
use serde::Serialize;

use super::InvitationReport;

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct ChangedBooking {
    pub event_id: String,
    pub title: String,
    pub start_time: String,
    pub end_time: String,
    pub attendees: Vec<String>,
    pub calendar: String,
    pub invitations: InvitationReport,
}

impl From<ChangedEvent> for ChangedBooking {
    fn from(ChangedEvent { event, invitations }: ChangedEvent) -> Self {
        Self {
            event_id: event.id,
            title: event.summary,
            start_time: event.start,
            end_time: event.end,
            attendees: event.attendees,
            calendar: event.calendar,
            invitations: InvitationReport::new(invitations),
        }
    }
}
