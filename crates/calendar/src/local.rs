//! The calendars in our own store.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use quarterdeck_contracts::handler::{BoxFuture, CapabilityError, CapabilityErrorCode};
use quarterdeck_contracts::{
    BookingOrigin, Calendar, CalendarInfo, Cancellation, ChangedEvent, Event, EventQuery, EventRef, NewEvent,
    Overlay, Reschedule, StoreError, Table, canonical_json, sha256,
};
use serde_json::{Value, json};

use crate::change::{ChangeError, OccurrenceId};
use crate::config::{CalendarConfig, ConfigError};
use crate::moment::Moment;
use crate::row::{EventRow, new_booking};
use crate::times::{read_period, read_window};
use crate::view::{EventCollector, find_event};

/// The row that every change of the calendars changes. Every query reads it, so that two bookings that saw the same
/// free hour cannot both be committed.
pub const REVISION: &str = "_revision";

/// Events of one calendar that a query reads.
const MAX_ROWS: usize = 100_000;

#[derive(Clone)]
pub struct LocalCalendar(Arc<CalendarCore>);

struct CalendarCore {
    config: CalendarConfig,
    home: TimeZone,
}

impl LocalCalendar {
    pub fn from_config(config: CalendarConfig) -> Result<Self, ConfigError> {
        let home = config.check()?;
        Ok(Self(Arc::new(CalendarCore { config, home })))
    }

    pub fn config(&self) -> &CalendarConfig {
        &self.0.config
    }

    /// Every event of one calendar, for [`export`](crate::export).
    pub async fn rows(&self, calendar: &str, overlay: &Overlay) -> Result<Vec<EventRow>, CapabilityError> {
        self.0.check_name(calendar)?;
        self.0.rows(calendar, overlay).await
    }
}

impl Calendar for LocalCalendar {
    fn is_in_store(&self, _calendar: &str) -> bool {
        true
    }

    fn list(&self) -> Vec<CalendarInfo> {
        let info = |name: &String| CalendarInfo {
            name: name.clone(),
            backend: "local".into(),
            has_conferences: false,
            notifies_by: None,
        };
        self.0.config.calendars.iter().map(info).collect()
    }

    fn events(
        &self,
        query: EventQuery,
        overlay: Arc<Overlay>,
    ) -> BoxFuture<Result<Vec<Event>, CapabilityError>> {
        let core = self.0.clone();
        Box::pin(async move { core.events(query, &overlay).await })
    }

    fn find(&self, event: EventRef, overlay: Arc<Overlay>) -> BoxFuture<Result<Event, CapabilityError>> {
        let core = self.0.clone();
        Box::pin(async move {
            let found = core.find(&event.id, event.calendar.as_deref(), &overlay).await?;
            Ok(found.event)
        })
    }

    fn create(
        &self,
        event: NewEvent,
        origin: BookingOrigin,
        overlay: Arc<Overlay>,
    ) -> BoxFuture<Result<ChangedEvent, CapabilityError>> {
        let core = self.0.clone();
        Box::pin(async move { core.create(event, origin, &overlay).await.map(ChangedEvent::from) })
    }

    fn reschedule(
        &self,
        change: Reschedule,
        origin: BookingOrigin,
        overlay: Arc<Overlay>,
    ) -> BoxFuture<Result<ChangedEvent, CapabilityError>> {
        let core = self.0.clone();
        Box::pin(async move { core.reschedule(change, origin, &overlay).await.map(ChangedEvent::from) })
    }

    fn cancel(
        &self,
        cancellation: Cancellation,
        origin: BookingOrigin,
        overlay: Arc<Overlay>,
    ) -> BoxFuture<Result<ChangedEvent, CapabilityError>> {
        let core = self.0.clone();
        Box::pin(async move { core.cancel(cancellation, origin, &overlay).await.map(ChangedEvent::from) })
    }
}

/// An event with the row that it is part of.
struct FoundEvent {
    event: Event,
    row: EventRow,
    id: OccurrenceId,
}

impl CalendarCore {
    async fn events(&self, query: EventQuery, overlay: &Overlay) -> Result<Vec<Event>, CapabilityError> {
        let (start, end) = read_window(&query.time_min, &query.time_max)?;
        let mut calendars = query.calendars;
        if calendars.is_empty() {
            calendars.clone_from(&self.config.calendars);
        }
        calendars.sort();
        calendars.dedup();
        for calendar in &calendars {
            self.check_name(calendar)?;
        }

        // Before the rows, so that a change in between is noticed at the commit.
        overlay.get(Table::Calendar, REVISION).await.map_err(store_failed)?;
        let mut events = EventCollector::new(start, end, &self.home);
        for calendar in &calendars {
            for row in self.rows(calendar, overlay).await? {
                events.add(&row, &version(&row))?;
            }
        }
        Ok(events.finish())
    }

    async fn find(
        &self,
        id: &str,
        calendar: Option<&str>,
        overlay: &Overlay,
    ) -> Result<FoundEvent, CapabilityError> {
        if let Some(calendar) = calendar {
            self.check_name(calendar)?;
        }
        let calendars = self.config.calendars.iter().filter(|name| calendar.is_none_or(|only| only == *name));
        for name in calendars {
            for id in OccurrenceId::readings(id) {
                let key = format!("{name}/{}", id.uid);
                let Some(value) = overlay.get(Table::Calendar, &key).await.map_err(store_failed)? else {
                    continue;
                };
                let row = EventRow::parse(&value).map_err(|bad| unavailable(bad.to_string()))?;
                if let Some(event) = find_event(&row, &id, &version(&row), &self.home) {
                    return Ok(FoundEvent { event, row, id });
                }
            }
        }
        Err(CapabilityError::new(CapabilityErrorCode::NotFound, "there is no such event"))
    }

    async fn create(
        &self,
        new: NewEvent,
        origin: BookingOrigin,
        overlay: &Overlay,
    ) -> Result<Event, CapabilityError> {
        self.check_name(&new.calendar)?;
        let (start, end) = read_period(&new.start, &new.end)?;
        if new.only_if_free {
            self.require_free(&new.calendar, (start, end), None, overlay).await?;
        }
        let revision = next_revision(overlay).await.map_err(store_failed)?;
        // The revision makes it unique: of two bookings with the same one, only one can be committed.
        let seed = json!({ "revision": revision, "event": new });
        let id = sha256(canonical_json(&seed).as_bytes())[..32].to_owned();
        let row = new_booking(new, format!("{id}@quarterdeck"), (start, end), &origin);
        overlay.put(Table::Calendar, row.key(), row.to_value());
        let id = OccurrenceId { uid: row.uid.clone(), occurrence: None };
        find_event(&row, &id, &version(&row), &self.home).ok_or_else(|| not_changed(ChangeError::OutOfRange))
    }

    async fn reschedule(
        &self,
        change: Reschedule,
        origin: BookingOrigin,
        overlay: &Overlay,
    ) -> Result<Event, CapabilityError> {
        let (start, end) = read_period(&change.start, &change.end)?;
        let FoundEvent { event, mut row, id } =
            self.find(&change.id, change.calendar.as_deref(), overlay).await?;
        check_version(&event, change.version.as_deref())?;
        if change.only_if_free {
            self.require_free(&row.calendar, (start, end), Some(&event.id), overlay).await?;
        }
        next_revision(overlay).await.map_err(store_failed)?;
        row.reschedule(id.occurrence, (start, end), &self.home).map_err(not_changed)?;
        row.stamp = stamp(&origin);
        overlay.put(Table::Calendar, row.key(), row.to_value());
        find_event(&row, &id, &version(&row), &self.home)
            .ok_or_else(|| not_changed(ChangeError::NoSuchOccurrence))
    }

    async fn cancel(
        &self,
        cancellation: Cancellation,
        origin: BookingOrigin,
        overlay: &Overlay,
    ) -> Result<Event, CapabilityError> {
        let FoundEvent { event, mut row, id } =
            self.find(&cancellation.id, cancellation.calendar.as_deref(), overlay).await?;
        check_version(&event, cancellation.version.as_deref())?;
        next_revision(overlay).await.map_err(store_failed)?;
        match id.occurrence {
            None => overlay.delete(Table::Calendar, row.key()),
            Some(original) => {
                row.cancel_occurrence(original, &self.home).map_err(not_changed)?;
                row.stamp = stamp(&origin);
                overlay.put(Table::Calendar, row.key(), row.to_value());
            }
        }
        Ok(Event { sequence: event.sequence + 1, ..event })
    }

    /// Refuses time that is taken by another event than the one that is moved.
    async fn require_free(
        &self,
        calendar: &str,
        (start, end): (Timestamp, Timestamp),
        moved: Option<&str>,
        overlay: &Overlay,
    ) -> Result<(), CapabilityError> {
        let query = EventQuery {
            time_min: start.to_string(),
            time_max: end.to_string(),
            calendars: vec![calendar.to_owned()],
        };
        let taken = self.events(query, overlay).await?;
        if taken.iter().any(|event| Some(event.id.as_str()) != moved) {
            let message = format!("the calendar {calendar:?} is busy at that time");
            return Err(CapabilityError::new(CapabilityErrorCode::Conflict, message));
        }
        Ok(())
    }

    async fn rows(&self, calendar: &str, overlay: &Overlay) -> Result<Vec<EventRow>, CapabilityError> {
        let prefix = format!("{calendar}/");
        let rows = overlay.scan(Table::Calendar, &prefix, MAX_ROWS + 1).await.map_err(store_failed)?;
        if rows.len() > MAX_ROWS {
            let message = format!("the calendar {calendar:?} holds more than {MAX_ROWS} events");
            return Err(CapabilityError::new(CapabilityErrorCode::InvalidArgument, message));
        }
        let parse = |(_, value): &(String, Value)| EventRow::parse(value);
        rows.iter().map(parse).collect::<Result<_, _>>().map_err(|bad| unavailable(bad.to_string()))
    }

    fn check_name(&self, calendar: &str) -> Result<(), CapabilityError> {
        if self.config.calendars.iter().any(|known| known == calendar) {
            return Ok(());
        }
        let known = self.config.calendars.join(", ");
        let message = format!("there is no calendar {calendar:?}; there are {known}");
        Err(CapabilityError::new(CapabilityErrorCode::NotFound, message))
    }
}

/// Reads the revision and writes the next one.
pub(crate) async fn next_revision(overlay: &Overlay) -> Result<u64, StoreError> {
    let row = overlay.get(Table::Calendar, REVISION).await?;
    let revision = row.and_then(|row| row["revision"].as_u64()).unwrap_or(0) + 1;
    overlay.put(Table::Calendar, REVISION, json!({ "revision": revision }));
    Ok(revision)
}

/// Changes with every change of a row.
fn version(row: &EventRow) -> String {
    sha256(canonical_json(&row.to_value()).as_bytes())[..16].to_owned()
}

fn check_version(event: &Event, seen: Option<&str>) -> Result<(), CapabilityError> {
    if seen.is_some() && seen != event.version.as_deref() {
        let message = "the event has changed since it was looked up";
        return Err(CapabilityError::new(CapabilityErrorCode::Conflict, message));
    }
    Ok(())
}

fn stamp(origin: &BookingOrigin) -> Option<Moment> {
    let now = Timestamp::try_from(origin.now).ok()?;
    Timestamp::from_second(now.as_second()).ok().map(Moment::Utc)
}

fn not_changed(error: ChangeError) -> CapabilityError {
    CapabilityError::new(CapabilityErrorCode::InvalidArgument, error.to_string())
}

fn unavailable(message: String) -> CapabilityError {
    CapabilityError::new(CapabilityErrorCode::NotAvailable, message)
}

fn store_failed(error: StoreError) -> CapabilityError {
    unavailable(format!("the calendar cannot be read: {error}"))
}
