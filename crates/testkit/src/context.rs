//! A world for one call, fixtures still.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use quarterdeck_contracts::handler::{
    BoxFuture, CallFacts, CapabilityCall, CapabilityError, CapabilityErrorCode, Context, LogLevel,
    SessionFacts, ToolFacts,
};
use quarterdeck_contracts::{Capability, Event, EventQuery, KnowledgeRecord, Mode, NewEvent, SearchResults};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A context whose clock stands still, whose store is a map, and which remembers what a handler did.
pub struct FakeContext {
    facts: CallFacts,
    now: SystemTime,
    fixtures: Mutex<Fixtures>,
    effects: Mutex<RecordedEffects>,
}

/// What capabilities answer with.
#[derive(Default)]
struct Fixtures {
    events: Vec<Event>,
    calendar_failure: Option<CapabilityError>,
    client_is_gone: bool,
    results: SearchResults,
    records: Vec<KnowledgeRecord>,
    knowledge_failure: Option<CapabilityErrorCode>,
}

/// What a handler did.
#[derive(Debug, Default, Clone)]
pub struct RecordedEffects {
    /// Lines for the log, with their level.
    pub logs: Vec<(LogLevel, String)>,
    /// Entries for the audit trail.
    pub audits: Vec<(String, Value)>,
    /// Notes on progress.
    pub progress: Vec<String>,
    /// Messages to the client.
    pub messages: Vec<Value>,
    /// The values that were put.
    pub store: BTreeMap<String, Value>,
    /// Appointments that were made.
    pub created: Vec<NewEvent>,
    /// Blocks of the client: seconds and message.
    pub blocks: Vec<(Value, Value)>,
    /// Questions to the knowledge base.
    pub questions: Vec<Value>,
}

impl FakeContext {
    /// At 2026-01-13T09:00:00Z, in text, with every capability.
    pub fn new() -> Arc<Self> {
        Self::at(Self::usual_time())
    }

    /// At another time.
    pub fn at(now: SystemTime) -> Arc<Self> {
        Self::with(now, Mode::Text, true)
    }

    /// In a voice session that is open.
    pub fn in_voice() -> Arc<Self> {
        Self::with(Self::usual_time(), Mode::Voice, true)
    }

    /// In a session that has ended.
    pub fn in_ended_session() -> Arc<Self> {
        Self::with(Self::usual_time(), Mode::Text, false)
    }

    fn usual_time() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_768_294_800)
    }

    fn with(now: SystemTime, mode: Mode, is_active: bool) -> Arc<Self> {
        use Capability::{Calendar, Kb, Moderation, Store, Tools};
        let facts = CallFacts {
            client_id: "client_1".into(),
            mode,
            call_id: "call_1".into(),
            tool: Arc::new(ToolFacts { id: "tool".into(), version: "1.0.0".into(), idempotent: true }),
            session: Arc::new(SessionFacts {
                id: "session_1".into(),
                is_active,
                turn: 1,
                tools_version: "1.0.00000000".into(),
                state: json!({ "isActive": is_active, "mode": mode }),
            }),
            clamped: BTreeMap::new(),
            capabilities: [Kb, Calendar, Store, Tools, Moderation].into(),
        };
        Arc::new(Self { facts, now, fixtures: Mutex::default(), effects: Mutex::default() })
    }

    /// Puts events into the calendar. Those of every calendar are found whenever no calendar is named.
    pub fn set_events(&self, events: Vec<Event>) {
        self.fixtures().events = events;
    }

    /// Makes every use of the calendar fail.
    pub fn fail_calendar(&self, failure: CapabilityError) {
        self.fixtures().calendar_failure = Some(failure);
    }

    /// What every search finds.
    pub fn set_search_results(&self, results: SearchResults) {
        self.fixtures().results = results;
    }

    /// The records that can be got by their ids.
    pub fn set_records(&self, records: Vec<KnowledgeRecord>) {
        self.fixtures().records = records;
    }

    /// Makes every use of the knowledge base fail.
    pub fn fail_knowledge(&self, code: CapabilityErrorCode) {
        self.fixtures().knowledge_failure = Some(code);
    }

    /// Closes the client's connection.
    pub fn disconnect(&self) {
        self.fixtures().client_is_gone = true;
    }

    /// What the handler did so far.
    pub fn recorded(&self) -> RecordedEffects {
        self.effects().clone()
    }

    fn knowledge(&self, call: &CapabilityCall) -> Result<Value, CapabilityError> {
        let fixtures = self.fixtures();
        if let Some(code) = fixtures.knowledge_failure {
            return Err(CapabilityError::new(code, "the base says no"));
        }
        let asked = call.args.first().cloned().unwrap_or_default();
        if call.method == "find" {
            self.effects().questions.push(asked);
            return Ok(json!(fixtures.results));
        }
        let get = |id: &Value| fixtures.records.iter().find(|record| *id == json!(record.id));
        Ok(json!(asked.as_array().into_iter().flatten().map(get).collect::<Vec<_>>()))
    }

    fn fixtures(&self) -> MutexGuard<'_, Fixtures> {
        self.fixtures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn effects(&self) -> MutexGuard<'_, RecordedEffects> {
        self.effects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, call: CapabilityCall) -> Result<Value, CapabilityError> {
        let argument = |index: usize| call.args.get(index).cloned().unwrap_or(Value::Null);
        let key = argument(0).as_str().unwrap_or_default().to_owned();
        if call.capability == Capability::Calendar {
            return self.answer_calendar(&call.method, argument(0));
        }
        if call.capability == Capability::Kb {
            return self.knowledge(&call);
        }
        let mut effects = self.effects();
        match (call.capability, call.method.as_str()) {
            (Capability::Messaging, "send") if self.fixtures().client_is_gone => {
                return Err(CapabilityError::new(
                    CapabilityErrorCode::NotAvailable,
                    "the client is not connected",
                ));
            }
            (Capability::Messaging, "send") => effects.messages.push(argument(0)),
            (Capability::Moderation, "block") => {
                effects.blocks.push((argument(0), argument(1)));
                let seconds = argument(0).as_u64().unwrap_or(0);
                return Ok(serde_json::json!({ "until": seconds * 1_000, "seconds": seconds }));
            }
            (Capability::Store, "get") => return Ok(effects.store.get(&key).cloned().unwrap_or(Value::Null)),
            (Capability::Store, "put") => drop(effects.store.insert(key, argument(1))),
            (Capability::Store, "delete") => drop(effects.store.remove(&key)),
            (capability, method) => {
                let message = format!("{capability:?}.{method} is not part of the fake context");
                return Err(CapabilityError::new(CapabilityErrorCode::NotAvailable, message));
            }
        }
        Ok(Value::Null)
    }

    fn answer_calendar(&self, method: &str, argument: Value) -> Result<Value, CapabilityError> {
        let mut fixtures = self.fixtures();
        if let Some(failure) = &fixtures.calendar_failure {
            return Err(failure.clone());
        }
        match method {
            "getEvents" => {
                let query: EventQuery = read(argument)?;
                let (from, to) = (instant(&query.time_min)?, instant(&query.time_max)?);
                let mut found = Vec::new();
                for event in &fixtures.events {
                    let named = query.calendars.is_empty() || query.calendars.contains(&event.calendar);
                    if named && instant(&event.start)? < to && instant(&event.end)? > from {
                        found.push(event.clone());
                    }
                }
                found.sort_by_key(|event| instant(&event.start).ok());
                Ok(json!(found))
            }
            "createEvent" => {
                let new: NewEvent = read(argument)?;
                let event = Event {
                    id: format!("event_{}", fixtures.events.len() + 1),
                    start: instant(&new.start)?.to_string(),
                    end: instant(&new.end)?.to_string(),
                    summary: new.summary.clone(),
                    attendees: new.attendees.clone(),
                    calendar: new.calendar.clone(),
                    conference: new.conference.then(|| "https://meet.example/1".to_owned()),
                    private: false,
                    booked_by: None,
                };
                fixtures.events.push(event.clone());
                self.effects().created.push(new);
                Ok(json!(event))
            }
            other => Err(invalid(format!("calendar.{other} is not part of the fake context"))),
        }
    }
}

fn read<T: DeserializeOwned>(argument: Value) -> Result<T, CapabilityError> {
    serde_json::from_value(argument).map_err(|error| invalid(error.to_string()))
}

fn instant(text: &str) -> Result<Timestamp, CapabilityError> {
    text.parse().map_err(|_| invalid(format!("{text:?} is not a time")))
}

fn invalid(message: String) -> CapabilityError {
    CapabilityError::new(CapabilityErrorCode::InvalidArgument, message)
}

impl Context for FakeContext {
    fn facts(&self) -> &CallFacts {
        &self.facts
    }

    fn now(&self) -> SystemTime {
        self.now
    }

    fn log(&self, level: LogLevel, text: &str) {
        self.effects().logs.push((level, text.to_owned()));
    }

    fn audit(&self, event: &str, data: Value) {
        self.effects().audits.push((event.to_owned(), data));
    }

    fn progress(&self, text: &str) {
        self.effects().progress.push(text.to_owned());
    }

    fn request(&self, call: CapabilityCall) -> BoxFuture<Result<Value, CapabilityError>> {
        Box::pin(std::future::ready(self.answer(call)))
    }
}
