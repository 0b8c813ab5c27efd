//! The calendar as the runtime sees it.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_calendar::{read_period, read_window};
use quarterdeck_contracts::handler::{BoxFuture, CapabilityError, CapabilityErrorCode};
use quarterdeck_contracts::{
    BookingOrigin, Calendar, CalendarInfo, Cancellation, ChangedEvent, Event, EventQuery, EventRef,
    Invitations, NewEvent, NoticeStatus, Notified, Overlay, Reschedule,
};

use super::convert::{Span, client_property, event_id, is_event_id, to_event, to_resource};
use super::wire::EventResource;
use super::{GoogleCalendar, GoogleCore, SendUpdates, failed};

/// What [`Notified::how`] says.
const HOW: &str = "google_calendar";
/// Google makes links to Meet after the event, usually within a second.
const CONFERENCE_POLLS: u32 = 3;
const CONFERENCE_POLL_INTERVAL: Duration = Duration::from_millis(400);

impl Calendar for GoogleCalendar {
    fn list(&self) -> Vec<CalendarInfo> {
        let core = &self.0;
        vec![CalendarInfo {
            name: core.name.clone(),
            backend: "google".into(),
            has_conferences: core.meet,
            notifies_by: (core.send_updates == SendUpdates::All).then(|| HOW.into()),
        }]
    }

    fn events(&self, query: EventQuery, _: Arc<Overlay>) -> BoxFuture<Result<Vec<Event>, CapabilityError>> {
        let core = self.0.clone();
        Box::pin(async move { core.events(query).await })
    }

    fn find(&self, event: EventRef, _: Arc<Overlay>) -> BoxFuture<Result<Event, CapabilityError>> {
        let core = self.0.clone();
        Box::pin(async move {
            core.check_name(event.calendar.as_slice())?;
            core.event(core.find(&event.id).await?)
        })
    }

    fn create(
        &self,
        event: NewEvent,
        origin: BookingOrigin,
        _: Arc<Overlay>,
    ) -> BoxFuture<Result<ChangedEvent, CapabilityError>> {
        let core = self.0.clone();
        Box::pin(async move { core.create(event, origin).await })
    }

    fn reschedule(
        &self,
        change: Reschedule,
        _: BookingOrigin,
        _: Arc<Overlay>,
    ) -> BoxFuture<Result<ChangedEvent, CapabilityError>> {
        let core = self.0.clone();
        Box::pin(async move { core.reschedule(change).await })
    }

    fn cancel(
        &self,
        cancellation: Cancellation,
        _: BookingOrigin,
        _: Arc<Overlay>,
    ) -> BoxFuture<Result<ChangedEvent, CapabilityError>> {
        let core = self.0.clone();
        Box::pin(async move { core.cancel(cancellation).await })
    }
}

impl GoogleCore {
    async fn events(&self, query: EventQuery) -> Result<Vec<Event>, CapabilityError> {
        self.check_name(&query.calendars)?;
        let span = Span::from(read_window(&query.time_min, &query.time_max)?);
        let (time_min, time_max) = span.texts();
        let events = self.client.list(&time_min, &time_max).await?;
        let busy = events.into_iter().filter(EventResource::is_busy);
        busy.map(|event| self.event(event)).collect()
    }

    async fn find(&self, id: &str) -> Result<EventResource, CapabilityError> {
        let missing = || failed(CapabilityErrorCode::NotFound, "there is no such event");
        if !is_event_id(id) {
            return Err(missing());
        }
        let found = self.client.get(id).await?;
        if found.is_cancelled() { Err(missing()) } else { Ok(found) }
    }

    async fn create(&self, new: NewEvent, origin: BookingOrigin) -> Result<ChangedEvent, CapabilityError> {
        self.check_name(std::slice::from_ref(&new.calendar))?;
        let span = Span::from(read_period(&new.start, &new.end)?);
        let id = event_id(&origin.call_key);
        let only_if_free = new.only_if_free;
        let resource = to_resource(new, &span, id, &client_property(&origin.client_id), self.meet);
        let _change = self.changes.lock().await;
        if only_if_free {
            let (start, end) = span.texts();
            if !self.client.free_busy(&start, &end).await?.is_empty() {
                // It may be an earlier attempt of this very call that has taken the time.
                return match self.find(&resource.id).await {
                    Ok(found) => self.changed(found, self.send_updates),
                    Err(fault) if fault.code == CapabilityErrorCode::NotFound => Err(is_taken()),
                    Err(fault) => Err(fault),
                };
            }
        }
        let inserted = self.insert(&resource).await?;
        let inserted = self.with_conference(inserted).await;
        self.changed(inserted, self.send_updates)
    }

    async fn reschedule(&self, change: Reschedule) -> Result<ChangedEvent, CapabilityError> {
        self.check_name(change.calendar.as_slice())?;
        let span = Span::from(read_period(&change.start, &change.end)?);
        let _change = self.changes.lock().await;
        self.find(&change.id).await?;
        if change.only_if_free {
            let (start, end) = span.texts();
            // Free/busy does not say whose time it is, and the event is not in its own way.
            let others = self.client.list(&start, &end).await?;
            if others.iter().any(|other| other.is_busy() && other.id != change.id) {
                return Err(is_taken());
            }
        }
        let patched = self.patch(&change.id, change.version.as_deref(), &span).await?;
        self.changed(patched, self.send_updates)
    }

    async fn cancel(&self, cancelled: Cancellation) -> Result<ChangedEvent, CapabilityError> {
        self.check_name(cancelled.calendar.as_slice())?;
        let event = self.find(&cancelled.id).await?;
        let updates = if cancelled.notify { self.send_updates } else { SendUpdates::None };
        self.delete(&cancelled.id, cancelled.version.as_deref(), updates).await?;
        self.changed(event, updates)
    }

    /// The event with its link, once Google has made it. Without one it has none: nothing is promised.
    async fn with_conference(&self, mut event: EventResource) -> EventResource {
        for _ in 0..CONFERENCE_POLLS {
            if event.conference().is_some() || !event.is_conference_pending() {
                break;
            }
            tokio::time::sleep(CONFERENCE_POLL_INTERVAL).await;
            match self.client.get(&event.id).await {
                Ok(found) => event = found,
                Err(_) => break,
            }
        }
        event
    }

    fn changed(
        &self,
        resource: EventResource,
        updates: SendUpdates,
    ) -> Result<ChangedEvent, CapabilityError> {
        let event = self.event(resource)?;
        let told = |address: &String| Notified {
            address: address.clone(),
            how: HOW.into(),
            status: NoticeStatus::Sent,
        };
        let notified = match updates {
            SendUpdates::All => event.attendees.iter().map(told).collect(),
            SendUpdates::None => Vec::new(),
        };
        Ok(ChangedEvent { event, invitations: Invitations { notified, ics: None } })
    }

    fn event(&self, resource: EventResource) -> Result<Event, CapabilityError> {
        to_event(resource, &self.name, &self.zone)
    }

    fn check_name(&self, calendars: &[String]) -> Result<(), CapabilityError> {
        if calendars.iter().all(|calendar| *calendar == self.name) {
            return Ok(());
        }
        let message = format!("there is no calendar of this name; there is {}", self.name);
        Err(failed(CapabilityErrorCode::NotFound, message))
    }
}

fn is_taken() -> CapabilityError {
    failed(CapabilityErrorCode::Conflict, "the time is taken")
}
