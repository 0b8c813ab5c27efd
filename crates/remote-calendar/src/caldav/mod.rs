//! A calendar on a CalDAV server.
//!
//! Reading goes through a mirror of the collection (`mirror.rs`). A change is one conditional request: a booking must
//! find nothing under its name, which is made from the call's key; a change must find the version that was seen. If the
//! answer is lost, the object is looked at once more, and only if that does not tell is the outcome unknown.

mod discovery;
mod mirror;
mod multistatus;
mod operations;
mod server;
mod xml;

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use quarterdeck_calendar::read_window;
use quarterdeck_contracts::handler::{BoxFuture, CapabilityError};
use quarterdeck_contracts::{
    BookingOrigin, Calendar, CalendarInfo, Cancellation, ChangedEvent, Event, EventQuery, EventRef, NewEvent,
    Overlay, Reschedule,
};
use tokio::sync::Mutex;

use self::operations::CalDav;
use self::server::Server;
use crate::credential::Credential;
use crate::http::{AddressError, HttpClient, check_address};

/// Bytes of one answer.
const MAX_ANSWER_BYTES: usize = 16 << 20;

/// Where a calendar is.
#[derive(Debug, Clone)]
pub struct CalDavConfig {
    /// The configured name: `primary`.
    pub name: String,
    /// The calendar's own address, or the server's.
    pub url: String,
    /// Which of the user's calendars, by display name or last part of its path. Not needed if `url` is the calendar's own,
    /// or if there is only one.
    pub calendar: Option<String>,
    pub user: String,
    pub password: Option<Credential>,
    /// IANA name of the zone in which whole days and times without a zone are meant.
    pub time_zone: String,
    /// How long one request may take.
    pub timeout: Duration,
    /// Whether to keep a copy in memory where the server keeps sync tokens. Without one, each question is one request for
    /// its range of time, which suits calendars that are very large.
    pub mirror: bool,
}

/// Why a calendar cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetUpError {
    #[error("the address cannot be used: {0}")]
    Address(#[from] AddressError),
    #[error("{0:?} is not a known IANA time zone; write it like Europe/Berlin")]
    TimeZone(String),
    #[error("no HTTP client: {0}")]
    Client(#[from] reqwest::Error),
}

/// A calendar on a CalDAV server.
#[derive(Clone)]
pub struct CalDavCalendar(Arc<CalDav>);

impl CalDavCalendar {
    /// Opens no connection yet.
    pub fn new(config: CalDavConfig) -> Result<Self, SetUpError> {
        let address = check_address(&config.url)?;
        let home = TimeZone::get(&config.time_zone).map_err(|_| SetUpError::TimeZone(config.time_zone))?;
        let http = HttpClient::new(&config.name, config.timeout, MAX_ANSWER_BYTES)?;
        let server = Server { http, user: config.user, password: config.password };
        let (name, chosen, state) = (config.name, config.calendar, Mutex::default());
        let may_mirror = config.mirror;
        Ok(Self(Arc::new(CalDav { name, address, chosen, server, home, may_mirror, state })))
    }
}

impl Calendar for CalDavCalendar {
    fn list(&self) -> Vec<CalendarInfo> {
        vec![CalendarInfo {
            name: self.0.name.clone(),
            backend: "caldav".into(),
            has_conferences: false,
            notifies_by: None,
        }]
    }

    fn events(
        &self,
        query: EventQuery,
        _overlay: Arc<Overlay>,
    ) -> BoxFuture<Result<Vec<Event>, CapabilityError>> {
        let caldav = self.0.clone();
        Box::pin(async move {
            let window = read_window(&query.time_min, &query.time_max)?;
            let mut state = caldav.state.lock().await;
            caldav.events(&mut state, window).await
        })
    }

    fn find(&self, event: EventRef, _overlay: Arc<Overlay>) -> BoxFuture<Result<Event, CapabilityError>> {
        let caldav = self.0.clone();
        Box::pin(async move {
            let mut state = caldav.state.lock().await;
            caldav.find(&mut state, &event.id).await.map(|found| found.event)
        })
    }

    fn create(
        &self,
        event: NewEvent,
        origin: BookingOrigin,
        _overlay: Arc<Overlay>,
    ) -> BoxFuture<Result<ChangedEvent, CapabilityError>> {
        let caldav = self.0.clone();
        Box::pin(async move { caldav.create(event, origin).await.map(ChangedEvent::from) })
    }

    fn reschedule(
        &self,
        change: Reschedule,
        origin: BookingOrigin,
        _overlay: Arc<Overlay>,
    ) -> BoxFuture<Result<ChangedEvent, CapabilityError>> {
        let caldav = self.0.clone();
        Box::pin(async move { caldav.reschedule(change, origin).await.map(ChangedEvent::from) })
    }

    fn cancel(
        &self,
        cancellation: Cancellation,
        origin: BookingOrigin,
        _overlay: Arc<Overlay>,
    ) -> BoxFuture<Result<ChangedEvent, CapabilityError>> {
        let caldav = self.0.clone();
        Box::pin(async move { caldav.cancel(cancellation, origin).await.map(ChangedEvent::from) })
    }
}

/// For the fuzzer: reads an answer as the mirror does.
#[cfg(feature = "fuzzing")]
pub fn fuzz_multistatus(body: &[u8]) {
    if let Ok(found) = multistatus::read(body) {
        for resource in found.resources {
            if let Some(text) = resource.properties.calendar_data {
                let _ = mirror::rows_of(&text, "primary");
            }
        }
    }
}
