//! What one client may see and change of the calendars. Handlers are given no more, whatever their tool does with it.

use std::sync::Arc;

use super::Event;
use crate::Namespace;
use crate::handler::{CapabilityError, CapabilityErrorCode};

/// The client on whose behalf a calendar is read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalendarViewer {
    /// What the client is known by. The details of its own bookings are always shown.
    pub client_id: Arc<str>,
    /// Whether the details of every event are shown, not only of the client's own bookings.
    pub sees_details: bool,
    /// Whether every event may be moved and cancelled, not only the client's own bookings.
    pub may_manage: bool,
    /// Whether the calendar `personal` may be used by name, as the records of that name may be read.
    pub may_use_personal: bool,
}

impl CalendarViewer {
    /// Refuses the calendars that this client may not name. One that names none is answered from all of them, since time
    /// that is taken anywhere is not free.
    pub(super) fn check(&self, calendars: &[String]) -> Result<(), CapabilityError> {
        let personal = Namespace::Personal.as_str();
        if self.may_use_personal || calendars.iter().all(|calendar| calendar != personal) {
            return Ok(());
        }
        let message = format!("the calendar {personal} is open to clients who have signed in");
        Err(CapabilityError::new(CapabilityErrorCode::AuthError, message))
    }

    /// The event as this client may see it.
    pub(super) fn shown(&self, event: Event) -> Event {
        let changeable = self.may_change(&event);
        if self.sees_details || changeable {
            return Event { changeable, ..event };
        }
        Event {
            start: event.start,
            end: event.end,
            calendar: event.calendar,
            private: true,
            ..Event::default()
        }
    }

    /// The event, if this client may move and cancel it. Of any other it is told no more than that it has none of this id.
    pub(super) fn own(&self, event: Event) -> Result<Event, CapabilityError> {
        if self.may_change(&event) {
            return Ok(Event { changeable: true, ..event });
        }
        if self.sees_details {
            let message = "this event is not a booking of this client, so it cannot be changed here";
            return Err(CapabilityError::new(CapabilityErrorCode::AuthError, message));
        }
        Err(no_such_event())
    }

    fn may_change(&self, event: &Event) -> bool {
        self.may_manage || self.is_own(event)
    }

    fn is_own(&self, event: &Event) -> bool {
        event.booked_by.as_deref() == Some(&*self.client_id)
    }
}

/// Also the answer about events of others, so that ids cannot be tried out.
pub(super) fn no_such_event() -> CapabilityError {
    CapabilityError::new(CapabilityErrorCode::NotFound, "this client has no booking with this id")
}
