//! A calendar on a CalDAV server.
//!
//! Reading goes through a mirror of the collection (`mirror.rs`). A change is one conditional request: a booking must
//! find nothing under its name, which is made from the call's key; a change must find the version that was seen. If the
//! answer is lost, the object is looked at once more, and only if that does not tell is the outcome unknown.

mod discovery;
mod mirror;
mod multistatus;
mod server;
mod xml;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use quarterdeck_calendar::{
    ChangeError, EventCollector, EventRow, Moment, OccurrenceId, cancel_in_object, find_event,
    move_in_object, new_booking, read_period, read_window, write_object,
};
use quarterdeck_contracts::handler::{BoxFuture, CapabilityError, CapabilityErrorCode};
use quarterdeck_contracts::{
    BookingOrigin, Calendar, CalendarInfo, Cancellation, ChangedEvent, Event, EventQuery, EventRef, NewEvent,
    Overlay, Reschedule, canonical_json, sha256,
};
use serde_json::json;
use tokio::sync::Mutex;
use url::Url;

use self::discovery::{Collection, discover};
use self::mirror::{Mirror, objects_of_uid, objects_within, rows_of};
use self::server::{Expects, Object, Server, Written};
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

/// See the [module](self).
#[derive(Clone)]
pub struct CalDavCalendar(Arc<CalDav>);

struct CalDav {
    name: String,
    address: Url,
    chosen: Option<String>,
    server: Server,
    home: TimeZone,
    may_mirror: bool,
    /// Held while a booking is checked and made, so that two of this process cannot take the same time.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    collection: Option<Collection>,
    mirror: Mirror,
}

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

/// An event, and the object that holds it.
struct FoundEvent {
    event: Event,
    path: String,
    id: OccurrenceId,
}

/// An object as it is on the server at the moment of a change.
struct CurrentObject {
    url: Url,
    object: Object,
    row: EventRow,
    event: Event,
    id: OccurrenceId,
}

impl CalDav {
    /// The collection, found when it is first needed.
    async fn collection(&self, state: &mut State) -> Result<Collection, CapabilityError> {
        if let Some(known) = &state.collection {
            return Ok(known.clone());
        }
        let mut found = discover(&self.server, &self.address, self.chosen.as_deref()).await?;
        found.can_sync &= self.may_mirror;
        state.collection = Some(found.clone());
        Ok(found)
    }

    async fn events(
        &self,
        state: &mut State,
        (start, end): (Timestamp, Timestamp),
    ) -> Result<Vec<Event>, CapabilityError> {
        let collection = self.collection(state).await?;
        let mut events = EventCollector::new(start, end, &self.home);
        if collection.can_sync {
            self.refresh(state, &collection).await?;
            for (_, object) in state.mirror.objects() {
                object.rows.iter().try_for_each(|row| events.add(row, &object.etag))?;
            }
        } else {
            for (_, object) in objects_within(&self.server, &collection, &self.name, (start, end)).await? {
                object.rows.iter().try_for_each(|row| events.add(row, &object.etag))?;
            }
        }
        Ok(events.finish())
    }

    /// A collection that is gone is looked for again by the next question.
    async fn refresh(&self, state: &mut State, collection: &Collection) -> Result<(), CapabilityError> {
        let refreshed = state.mirror.refresh(&self.server, collection, &self.name).await;
        if refreshed.as_ref().is_err_and(|error| error.code == CapabilityErrorCode::NotFound) {
            *state = State::default();
        }
        refreshed
    }

    async fn find(&self, state: &mut State, id: &str) -> Result<FoundEvent, CapabilityError> {
        let collection = self.collection(state).await?;
        if collection.can_sync {
            self.refresh(state, &collection).await?;
        }
        for id in OccurrenceId::readings(id) {
            let found = if collection.can_sync {
                let fits = |row: &EventRow| row.uid == id.uid;
                let known = state.mirror.objects().filter(|(_, object)| object.rows.iter().any(fits));
                known.map(|(path, object)| (path.clone(), object.clone())).collect()
            } else {
                objects_of_uid(&self.server, &collection, &self.name, &id.uid).await?
            };
            for (path, object) in found {
                let mut rows = object.rows.iter();
                if let Some(event) = rows.find_map(|row| find_event(row, &id, &object.etag, &self.home)) {
                    return Ok(FoundEvent { event, path, id });
                }
            }
        }
        Err(CapabilityError::new(CapabilityErrorCode::NotFound, "there is no such event"))
    }

    async fn create(&self, new: NewEvent, origin: BookingOrigin) -> Result<Event, CapabilityError> {
        let period = read_period(&new.start, &new.end)?;
        // The same call always means the same event, however often it is tried.
        let seed = json!({ "key": &*origin.call_key, "event": new });
        let name = sha256(canonical_json(&seed).as_bytes())[..32].to_owned();
        let row = new_booking(new.clone(), format!("{name}@quarterdeck"), period, &origin);
        let id = OccurrenceId { uid: row.uid.clone(), occurrence: None };

        let mut state = self.state.lock().await;
        let collection = self.collection(&mut state).await?;
        if new.only_if_free {
            let taken = self.events(&mut state, period).await?;
            if let Some(booked) = taken.iter().find(|event| event.id == row.uid) {
                return Ok(booked.clone());
            }
            self.require_free(&taken, None)?;
        }
        let url = self.server.resolve(&collection.url, &format!("{name}.ics"))?;
        let etag = match self.server.put(&url, write_object(&row), Expects::Nothing).await {
            Ok(Written::Done(etag)) => etag,
            // Only this very booking has this name.
            Ok(Written::Changed) => None,
            Err(lost) if lost.code == CapabilityErrorCode::OutcomeUnknown => {
                return self.look_again(&url, &id, lost, |_| true).await;
            }
            Err(error) => return Err(error),
        };
        match etag {
            Some(etag) => find_event(&row, &id, &etag, &self.home).ok_or_else(no_such_event),
            None => self.current_event(&url, &id).await,
        }
    }

    async fn reschedule(&self, change: Reschedule, origin: BookingOrigin) -> Result<Event, CapabilityError> {
        let period = read_period(&change.start, &change.end)?;
        let mut state = self.state.lock().await;
        let CurrentObject { url, object, mut row, event, id } =
            self.current(&mut state, &change.id, change.version.as_deref()).await?;
        if change.only_if_free {
            let taken = self.events(&mut state, period).await?;
            self.require_free(&taken, Some(&event.id))?;
        }
        row.reschedule(id.occurrence, period, &self.home).map_err(not_changed)?;
        let text = move_in_object(&object.text, &row, id.occurrence, &stamp(&origin), &self.home)
            .ok_or_else(|| not_changed(ChangeError::NoSuchOccurrence))?;
        let is_moved =
            |event: &Event| period.0.to_string() == event.start && period.1.to_string() == event.end;
        match self.server.put(&url, text, Expects::Etag(&object.etag)).await {
            Ok(Written::Done(Some(etag))) => {
                find_event(&row, &id, &etag, &self.home).ok_or_else(no_such_event)
            }
            Ok(Written::Done(None)) => self.current_event(&url, &id).await,
            Ok(Written::Changed) => Err(changed()),
            Err(lost) if lost.code == CapabilityErrorCode::OutcomeUnknown => {
                self.look_again(&url, &id, lost, is_moved).await
            }
            Err(error) => Err(error),
        }
    }

    async fn cancel(
        &self,
        cancellation: Cancellation,
        origin: BookingOrigin,
    ) -> Result<Event, CapabilityError> {
        let mut state = self.state.lock().await;
        let current = self.current(&mut state, &cancellation.id, cancellation.version.as_deref()).await?;
        let CurrentObject { url, object, mut row, event, id } = current;
        let written = match id.occurrence {
            None => self.server.delete(&url, &object.etag).await,
            Some(original) => {
                row.cancel_occurrence(original, &self.home).map_err(not_changed)?;
                let text = cancel_in_object(&object.text, &row, original, &stamp(&origin), &self.home)
                    .ok_or_else(|| not_changed(ChangeError::NoSuchOccurrence))?;
                self.server.put(&url, text, Expects::Etag(&object.etag)).await
            }
        };
        match written {
            Ok(Written::Done(_)) => {}
            Ok(Written::Changed) => return Err(changed()),
            Err(lost) if lost.code == CapabilityErrorCode::OutcomeUnknown => {
                // It is gone, or it may still be taken away.
                match self.current_event(&url, &id).await {
                    Err(gone) if gone.code == CapabilityErrorCode::NotFound => {}
                    _ => return Err(lost),
                }
            }
            Err(error) => return Err(error),
        }
        Ok(Event { sequence: event.sequence + 1, ..event })
    }

    /// The object of an event, read anew: what the mirror knows may lack what we do not understand.
    async fn current(
        &self,
        state: &mut State,
        id: &str,
        version: Option<&str>,
    ) -> Result<CurrentObject, CapabilityError> {
        let FoundEvent { path, id, .. } = self.find(state, id).await?;
        let collection = self.collection(state).await?;
        let url = self.server.resolve(&collection.url, &path)?;
        let object = self.server.get(&url).await?.ok_or_else(no_such_event)?;
        if version.is_some_and(|version| version != object.etag) {
            return Err(changed());
        }
        let row = rows_of(&object.text, &self.name).into_iter().find(|row| row.uid == id.uid);
        let row = row.ok_or_else(no_such_event)?;
        let event = find_event(&row, &id, &object.etag, &self.home).ok_or_else(no_such_event)?;
        Ok(CurrentObject { url, object, row, event, id })
    }

    async fn current_event(&self, url: &Url, id: &OccurrenceId) -> Result<Event, CapabilityError> {
        let object = self.server.get(url).await?.ok_or_else(no_such_event)?;
        let rows = rows_of(&object.text, &self.name);
        let found = rows.iter().find_map(|row| find_event(row, id, &object.etag, &self.home));
        found.ok_or_else(no_such_event)
    }

    /// The answer to a change was lost. If the object shows the change, it was made; if it does not, it may still be.
    async fn look_again(
        &self,
        url: &Url,
        id: &OccurrenceId,
        lost: CapabilityError,
        is_made: impl Fn(&Event) -> bool,
    ) -> Result<Event, CapabilityError> {
        match self.current_event(url, id).await {
            Ok(event) if is_made(&event) => Ok(event),
            _ => Err(lost),
        }
    }

    /// Refuses time that is taken by another event than the one that is moved.
    fn require_free(&self, taken: &[Event], moved: Option<&str>) -> Result<(), CapabilityError> {
        if taken.iter().all(|event| Some(event.id.as_str()) == moved) {
            return Ok(());
        }
        let message = format!("the calendar {:?} is busy at that time", self.name);
        Err(CapabilityError::new(CapabilityErrorCode::Conflict, message))
    }
}

fn stamp(origin: &BookingOrigin) -> Moment {
    let now = Timestamp::try_from(origin.now).unwrap_or(Timestamp::UNIX_EPOCH);
    Moment::Utc(Timestamp::from_second(now.as_second()).unwrap_or(Timestamp::UNIX_EPOCH))
}

fn no_such_event() -> CapabilityError {
    CapabilityError::new(CapabilityErrorCode::NotFound, "there is no such event any more")
}

fn changed() -> CapabilityError {
    CapabilityError::new(CapabilityErrorCode::Conflict, "the event has changed since it was looked up")
}

fn not_changed(error: ChangeError) -> CapabilityError {
    CapabilityError::new(CapabilityErrorCode::InvalidArgument, error.to_string())
}

/// For the fuzzer: reads an answer as the mirror does.
#[cfg(feature = "fuzzing")]
pub fn fuzz_multistatus(body: &[u8]) {
    if let Ok(found) = multistatus::read(body) {
        for resource in found.resources {
            if let Some(text) = resource.properties.calendar_data {
                let _ = rows_of(&text, "primary");
            }
        }
    }
}
