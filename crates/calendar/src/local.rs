//! The calendar in our own store.

use std::sync::Arc;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use quarterdeck_contracts::handler::{BoxFuture, CapabilityError, CapabilityErrorCode};
use quarterdeck_contracts::{
    Calendar, Event, EventQuery, NewEvent, Overlay, StoreError, Table, canonical_json, sha256,
};
use serde_json::{Value, json};

use crate::config::{CalendarConfig, ConfigError};
use crate::expand::{Window, occurrences};
use crate::moment::Moment;
use crate::row::{Details, EventRow, Status};
use crate::rule::Budget;

/// The row that every change of the calendars changes. Every query reads it, so that two bookings that saw the same
/// free hour cannot both be committed.
pub const REVISION: &str = "_revision";

/// Events of one calendar that a query reads.
const MAX_ROWS: usize = 100_000;
const MAX_OCCURRENCES: usize = 20_000;

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
    fn is_in_store(&self) -> bool {
        true
    }

    fn events(
        &self,
        query: EventQuery,
        overlay: Arc<Overlay>,
    ) -> BoxFuture<Result<Vec<Event>, CapabilityError>> {
        let core = self.0.clone();
        Box::pin(async move { core.events(query, &overlay).await })
    }

    fn create(
        &self,
        event: NewEvent,
        booked_by: Arc<str>,
        overlay: Arc<Overlay>,
    ) -> BoxFuture<Result<Event, CapabilityError>> {
        let core = self.0.clone();
        Box::pin(async move { core.create(event, booked_by, &overlay).await })
    }
}

impl CalendarCore {
    async fn events(&self, query: EventQuery, overlay: &Overlay) -> Result<Vec<Event>, CapabilityError> {
        let window =
            Window { start: instant("timeMin", &query.time_min)?, end: instant("timeMax", &query.time_max)? };
        if window.start >= window.end {
            return Err(invalid("timeMin must be before timeMax"));
        }
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
        let mut events = Vec::new();
        let mut budget = Budget::new(Budget::QUERY);
        for calendar in &calendars {
            for row in self.rows(calendar, overlay).await? {
                let found = occurrences(&row, window, &self.home, &mut budget);
                let found = found.map_err(|_| too_many_events(&row.calendar))?;
                events.extend(found.into_iter().map(|one| to_event(&row, one.details, one.start, one.end)));
                if events.len() > MAX_OCCURRENCES {
                    return Err(too_many_events(&row.calendar));
                }
            }
        }
        events.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(events.into_iter().map(|(_, event)| event).collect())
    }

    async fn create(
        &self,
        new: NewEvent,
        booked_by: Arc<str>,
        overlay: &Overlay,
    ) -> Result<Event, CapabilityError> {
        self.check_name(&new.calendar)?;
        let start = whole_seconds(instant("start", &new.start)?, SignedDuration::ZERO)?;
        let end = whole_seconds(instant("end", &new.end)?, SignedDuration::from_nanos(999_999_999))?;
        if start >= end {
            return Err(invalid("start must be before end"));
        }
        let revision = next_revision(overlay).await.map_err(store_failed)?;
        // The revision makes it unique: of two bookings with the same one, only one can be committed.
        let seed = json!({ "revision": revision, "event": new });
        let id = sha256(canonical_json(&seed).as_bytes())[..32].to_owned();
        let conference = if new.conference { self.config.conference_url.as_deref() } else { None };
        let details = Details {
            start: Moment::Utc(start),
            end: Moment::Utc(end),
            summary: new.summary,
            description: new.description,
            location: String::new(),
            attendees: new.attendees,
            conference: conference.map(|url| url.replace("{id}", &id)),
            status: Status::Confirmed,
            free: false,
        };
        let booked_by = Some(booked_by);
        let row =
            EventRow { booked_by, ..EventRow::single(format!("{id}@quarterdeck"), new.calendar, details) };
        overlay.put(Table::Calendar, row.key(), row.to_value());
        Ok(to_event(&row, &row.details, start, end).1)
    }

    async fn rows(&self, calendar: &str, overlay: &Overlay) -> Result<Vec<EventRow>, CapabilityError> {
        let prefix = format!("{calendar}/");
        let rows = overlay.scan(Table::Calendar, &prefix, MAX_ROWS + 1).await.map_err(store_failed)?;
        if rows.len() > MAX_ROWS {
            return Err(too_many_events(calendar));
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

type Order = (Timestamp, Timestamp, String, String);

/// With its sort key.
fn to_event(row: &EventRow, details: &Details, start: Timestamp, end: Timestamp) -> (Order, Event) {
    let event = Event {
        id: row.uid.clone(),
        start: start.to_string(),
        end: end.to_string(),
        summary: details.summary.clone(),
        attendees: details.attendees.clone(),
        calendar: row.calendar.clone(),
        conference: details.conference.clone(),
        private: false,
        booked_by: row.booked_by.clone(),
    };
    ((start, end, row.calendar.clone(), row.uid.clone()), event)
}

fn instant(name: &str, text: &str) -> Result<Timestamp, CapabilityError> {
    text.parse().map_err(|_| invalid(&format!("{name} is not an RFC 3339 time with an offset")))
}

/// iCalendar knows no fractions of a second.
fn whole_seconds(instant: Timestamp, up: SignedDuration) -> Result<Timestamp, CapabilityError> {
    let moved = instant.checked_add(up).ok();
    let whole = moved.and_then(|moved| Timestamp::from_second(moved.as_second()).ok());
    whole.ok_or_else(|| invalid("the time is outside the calendar"))
}

fn invalid(message: &str) -> CapabilityError {
    CapabilityError::new(CapabilityErrorCode::InvalidArgument, message)
}

fn unavailable(message: String) -> CapabilityError {
    CapabilityError::new(CapabilityErrorCode::NotAvailable, message)
}

fn store_failed(error: StoreError) -> CapabilityError {
    unavailable(format!("the calendar cannot be read: {error}"))
}

/// An incomplete answer would show busy time as free.
fn too_many_events(calendar: &str) -> CapabilityError {
    invalid(&format!("the calendar {calendar:?} holds too much in this window; ask for a shorter one"))
}
