//! The capabilities of a [`FakeContext`](super::FakeContext), each a function over the same fixtures and effects.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};
use quarterdeck_contracts::{
    CalendarInfo, Cancellation, Capability, ChangedEvent, Event, EventQuery, EventRef, KnowledgeRecord,
    NewEvent, Reschedule, SearchResults,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Provider, RecordedEffects, not_faked};

/// What capabilities answer with, and what they were used for.
#[derive(Default)]
pub(super) struct State {
    fixtures: Mutex<Fixtures>,
    effects: Mutex<RecordedEffects>,
}

#[derive(Default)]
pub(super) struct Fixtures {
    pub(super) events: Vec<Event>,
    pub(super) has_conferences: bool,
    pub(super) calendar_failure: Option<CapabilityError>,
    pub(super) client_is_gone: bool,
    pub(super) now_ms: u64,
    pub(super) results: SearchResults,
    pub(super) records: Vec<KnowledgeRecord>,
    pub(super) knowledge_failure: Option<CapabilityErrorCode>,
}

type Fake = fn(&State, &str, &[Value]) -> Result<Value, CapabilityError>;

const FAKES: [(Capability, Fake); 6] = [
    (Capability::KB, knowledge),
    (Capability::CALENDAR, calendar),
    (Capability::IMAGES, images),
    (Capability::STORE, store),
    (Capability::MODERATION, moderation),
    (Capability::MESSAGING, messaging),
];

pub(super) fn providers(state: &Arc<State>) -> BTreeMap<Capability, Provider> {
    let provider = |fake: Fake| -> Provider {
        let state = state.clone();
        Arc::new(move |method: &str, args: &[Value]| fake(&state, method, args))
    };
    FAKES.into_iter().map(|(capability, fake)| (capability, provider(fake))).collect()
}

impl State {
    pub(super) fn fixtures(&self) -> MutexGuard<'_, Fixtures> {
        self.fixtures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn effects(&self) -> MutexGuard<'_, RecordedEffects> {
        self.effects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn knowledge(state: &State, method: &str, args: &[Value]) -> Result<Value, CapabilityError> {
    let fixtures = state.fixtures();
    if let Some(code) = fixtures.knowledge_failure {
        return Err(CapabilityError::new(code, "the base says no"));
    }
    if method == "find" {
        state.effects().questions.push(argument(args, 0));
        return Ok(json!(fixtures.results));
    }
    let get = |id: &Value| fixtures.records.iter().find(|record| *id == json!(record.id));
    let ids = args.first().and_then(Value::as_array).into_iter().flatten();
    Ok(json!(ids.map(get).collect::<Vec<_>>()))
}

fn calendar(state: &State, method: &str, args: &[Value]) -> Result<Value, CapabilityError> {
    if let Some(failure) = &state.fixtures().calendar_failure {
        return Err(failure.clone());
    }
    match method {
        "getEvents" => Ok(json!(events(state, read(args)?)?)),
        "getCalendars" => Ok(json!(calendars(state))),
        "getEvent" => Ok(json!(find_event(state, read(args)?)?)),
        "createEvent" => Ok(json!(ChangedEvent::from(create_event(state, read(args)?)?))),
        "moveEvent" => Ok(json!(ChangedEvent::from(move_event(state, read(args)?)?))),
        "cancelEvent" => Ok(json!(ChangedEvent::from(cancel_event(state, read(args)?)?))),
        _ => Err(not_faked(&Capability::CALENDAR, method)),
    }
}

fn events(state: &State, query: EventQuery) -> Result<Vec<Event>, CapabilityError> {
    let (from, to) = (instant(&query.time_min)?, instant(&query.time_max)?);
    let mut found = Vec::new();
    for event in &state.fixtures().events {
        let is_named = query.calendars.is_empty() || query.calendars.contains(&event.calendar);
        if is_named && instant(&event.start)? < to && instant(&event.end)? > from {
            found.push(event.clone());
        }
    }
    found.sort_by_key(|event| instant(&event.start).ok());
    Ok(found)
}

fn calendars(state: &State) -> Vec<CalendarInfo> {
    let info = |name: &str| CalendarInfo {
        name: name.to_owned(),
        backend: "local".into(),
        has_conferences: state.fixtures().has_conferences,
        notifies_by: None,
    };
    ["primary", "team", "personal"].map(info).into()
}

fn create_event(state: &State, new: NewEvent) -> Result<Event, CapabilityError> {
    let mut fixtures = state.fixtures();
    let event = Event {
        id: format!("event_{}", fixtures.events.len() + 1),
        start: instant(&new.start)?.to_string(),
        end: instant(&new.end)?.to_string(),
        summary: new.summary.clone(),
        attendees: new.attendees.clone(),
        calendar: new.calendar.clone(),
        description: new.description.clone(),
        conference: new.conference.then(|| "https://meet.example/1".to_owned()),
        version: Some("1".into()),
        changeable: true,
        ..Event::default()
    };
    fixtures.events.push(event.clone());
    state.effects().created.push(new);
    Ok(event)
}

fn find_event(state: &State, wanted: EventRef) -> Result<Event, CapabilityError> {
    let fixtures = state.fixtures();
    let found = fixtures.events.iter().find(|event| event.id == wanted.id);
    found.cloned().ok_or_else(|| CapabilityError::new(CapabilityErrorCode::NotFound, "no such event"))
}

fn move_event(state: &State, change: Reschedule) -> Result<Event, CapabilityError> {
    let mut moved = current_event(state, &change.id, change.version.as_deref())?;
    moved.start = instant(&change.start)?.to_string();
    moved.end = instant(&change.end)?.to_string();
    moved.sequence += 1;
    moved.version = Some((moved.sequence + 1).to_string());
    let mut fixtures = state.fixtures();
    fixtures.events.retain(|event| event.id != change.id);
    fixtures.events.push(moved.clone());
    Ok(moved)
}

fn cancel_event(state: &State, cancelled: Cancellation) -> Result<Event, CapabilityError> {
    let event = current_event(state, &cancelled.id, cancelled.version.as_deref())?;
    state.fixtures().events.retain(|other| other.id != cancelled.id);
    Ok(event)
}

fn current_event(state: &State, id: &str, version: Option<&str>) -> Result<Event, CapabilityError> {
    let event = find_event(state, EventRef { id: id.to_owned(), calendar: None })?;
    if version.is_some() && version != event.version.as_deref() {
        return Err(CapabilityError::new(CapabilityErrorCode::Conflict, "the event has changed"));
    }
    Ok(event)
}

/// Every image is the same small one.
fn images(state: &State, method: &str, args: &[Value]) -> Result<Value, CapabilityError> {
    if method != "generate" {
        return Err(not_faked(&Capability::IMAGES, method));
    }
    let mut effects = state.effects();
    effects.images.push(read(args)?);
    let id = format!("file_{:032x}", effects.images.len());
    let file = json!({ "id": id, "mediaType": "image/png", "bytes": 75, "width": 12, "height": 8 });
    Ok(json!({ "file": file, "provider": "fake/1" }))
}

fn store(state: &State, method: &str, args: &[Value]) -> Result<Value, CapabilityError> {
    let key = argument(args, 0).as_str().unwrap_or_default().to_owned();
    let store = &mut state.effects().store;
    match method {
        "get" => return Ok(store.get(&key).cloned().unwrap_or(Value::Null)),
        "put" => drop(store.insert(key, argument(args, 1))),
        "delete" => drop(store.remove(&key)),
        _ => return Err(not_faked(&Capability::STORE, method)),
    }
    Ok(Value::Null)
}

fn moderation(state: &State, method: &str, args: &[Value]) -> Result<Value, CapabilityError> {
    if method != "block" {
        return Err(not_faked(&Capability::MODERATION, method));
    }
    state.effects().blocks.push((argument(args, 0), argument(args, 1)));
    let seconds = argument(args, 0).as_u64().unwrap_or(0);
    Ok(json!({ "until": state.fixtures().now_ms + seconds * 1_000, "seconds": seconds }))
}

fn messaging(state: &State, method: &str, args: &[Value]) -> Result<Value, CapabilityError> {
    if method != "send" {
        return Err(not_faked(&Capability::MESSAGING, method));
    }
    if state.fixtures().client_is_gone {
        let message = "the client is not connected";
        return Err(CapabilityError::new(CapabilityErrorCode::NotAvailable, message));
    }
    state.effects().messages.push(argument(args, 0));
    Ok(Value::Null)
}

fn argument(args: &[Value], index: usize) -> Value {
    args.get(index).cloned().unwrap_or_default()
}

fn read<T: DeserializeOwned>(args: &[Value]) -> Result<T, CapabilityError> {
    serde_json::from_value(argument(args, 0)).map_err(|error| invalid(error.to_string()))
}

fn instant(text: &str) -> Result<Timestamp, CapabilityError> {
    text.parse().map_err(|_| invalid(format!("{text:?} is not a time")))
}

fn invalid(message: String) -> CapabilityError {
    CapabilityError::new(CapabilityErrorCode::InvalidArgument, message)
}
