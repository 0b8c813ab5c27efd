//! Looking, booking, moving and cancelling. What a lost answer leaves open is decided here.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use quarterdeck_calendar::{
    ChangeError, EventCollector, EventRow, Moment, OccurrenceId, cancel_in_object, find_event,
    move_in_object, new_booking, read_period, write_object,
};
use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};
use quarterdeck_contracts::{
    BookingOrigin, Cancellation, Event, NewEvent, Reschedule, canonical_json, sha256,
};
use serde_json::json;
use tokio::sync::Mutex;
use url::Url;

use super::discovery::{Collection, discover};
use super::mirror::{Mirror, objects_of_uid, objects_within, rows_of};
use super::server::{Expects, Object, Server, Written};

/// A calendar on a server.
pub(super) struct CalDav {
    pub(super) name: String,
    pub(super) address: Url,
    pub(super) chosen: Option<String>,
    pub(super) server: Server,
    pub(super) home: TimeZone,
    pub(super) may_mirror: bool,
    /// Held while a booking is checked and made, so that two of this process cannot take the same time.
    pub(super) state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    collection: Option<Collection>,
    mirror: Mirror,
}

/// An event, and the object that holds it.
pub(super) struct FoundEvent {
    pub(super) event: Event,
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

    pub(super) async fn events(
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

    pub(super) async fn find(&self, state: &mut State, id: &str) -> Result<FoundEvent, CapabilityError> {
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

    pub(super) async fn create(
        &self,
        new: NewEvent,
        origin: BookingOrigin,
    ) -> Result<Event, CapabilityError> {
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

    pub(super) async fn reschedule(
        &self,
        change: Reschedule,
        origin: BookingOrigin,
    ) -> Result<Event, CapabilityError> {
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

    pub(super) async fn cancel(
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
