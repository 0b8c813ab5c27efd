//! A context for one call, with a clock that stands still.

mod fakes;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use quarterdeck_contracts::handler::{
    BoxFuture, CallFacts, CancellationToken, CapabilityCall, CapabilityError, CapabilityErrorCode, Context,
    HandlerFault, LogLevel, SessionFacts, ToolFacts,
};
use quarterdeck_contracts::{
    BUILT_IN_CAPABILITIES, Capability, CapabilitySpec, Event, ImageRequest, KnowledgeRecord, Mode, NewEvent,
    SearchResults,
};
use serde_json::{Value, json};

use fakes::State;

/// A context whose clock stands still, whose store is a map, and which remembers what a handler did.
pub struct FakeContext {
    facts: CallFacts,
    now: SystemTime,
    providers: Mutex<BTreeMap<Capability, Provider>>,
    state: Arc<State>,
    signal: CancellationToken,
}

/// Answers the requests of one capability: method and arguments in, value out.
type Provider = Arc<dyn Fn(&str, &[Value]) -> Result<Value, CapabilityError> + Send + Sync>;

/// What a handler did.
#[derive(Debug, Default, Clone)]
pub struct RecordedEffects {
    /// Lines for the log, with their level.
    pub logs: Vec<(LogLevel, String)>,
    /// Why it had no good answer.
    pub faults: Vec<HandlerFault>,
    /// Entries for the audit trail.
    pub audits: Vec<(String, Value)>,
    /// Notes on progress.
    pub progress: Vec<String>,
    /// Partial results.
    pub partial: Vec<Value>,
    /// Messages to the client.
    pub messages: Vec<Value>,
    /// The values that were put.
    pub store: BTreeMap<String, Value>,
    /// Appointments that were made.
    pub created: Vec<NewEvent>,
    /// Images that were asked for.
    pub images: Vec<ImageRequest>,
    /// Blocks of the client: seconds and message.
    pub blocks: Vec<(Value, Value)>,
    /// Questions to the knowledge base.
    pub questions: Vec<Value>,
    /// Whether something was sent that may have changed the world outside.
    pub reached_outside: bool,
}

impl FakeContext {
    /// At 2026-01-13T09:00:00Z, in text, with every capability.
    pub fn new() -> Arc<Self> {
        Self::at(Self::usual_time())
    }

    /// At another time.
    pub fn at(now: SystemTime) -> Arc<Self> {
        Self::with(now, Mode::Text, true, Value::Null)
    }

    /// In a call that the user has approved after the handler's precheck saw this.
    pub fn approved(seen: Value) -> Arc<Self> {
        Self::with(Self::usual_time(), Mode::Text, true, seen)
    }

    /// In a voice session that is open.
    pub fn in_voice() -> Arc<Self> {
        Self::with(Self::usual_time(), Mode::Voice, true, Value::Null)
    }

    /// In a session that has ended.
    pub fn in_ended_session() -> Arc<Self> {
        Self::with(Self::usual_time(), Mode::Text, false, Value::Null)
    }

    fn usual_time() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_768_294_800)
    }

    fn with(now: SystemTime, mode: Mode, is_active: bool, seen: Value) -> Arc<Self> {
        let state = Arc::new(State::default());
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        state.fixtures().now_ms = since.as_millis() as u64;
        let declarable = BUILT_IN_CAPABILITIES.iter().filter(|spec| !spec.is_always_granted);
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
            capabilities: declarable.map(CapabilitySpec::capability).collect(),
            seen,
        };
        Arc::new(Self {
            facts,
            now,
            providers: Mutex::new(fakes::providers(&state)),
            state,
            signal: CancellationToken::default(),
        })
    }

    /// Answers a capability's requests with this function, in the place of what answered them before.
    pub fn provide(
        &self,
        capability: Capability,
        provider: impl Fn(&str, &[Value]) -> Result<Value, CapabilityError> + Send + Sync + 'static,
    ) {
        self.providers.lock().unwrap_or_else(PoisonError::into_inner).insert(capability, Arc::new(provider));
    }

    /// Puts events into the calendar. Those of every calendar are found whenever no calendar is named.
    pub fn set_events(&self, events: Vec<Event>) {
        self.state.fixtures().events = events;
    }

    /// Configures a provider of video calls.
    pub fn set_conferences(&self) {
        self.state.fixtures().has_conferences = true;
    }

    /// Makes every use of the calendar fail.
    pub fn fail_calendar(&self, failure: CapabilityError) {
        self.state.fixtures().calendar_failure = Some(failure);
    }

    /// What every search finds.
    pub fn set_search_results(&self, results: SearchResults) {
        self.state.fixtures().results = results;
    }

    /// The records that can be got by their ids.
    pub fn set_records(&self, records: Vec<KnowledgeRecord>) {
        self.state.fixtures().records = records;
    }

    /// Makes every use of the knowledge base fail.
    pub fn fail_knowledge(&self, code: CapabilityErrorCode) {
        self.state.fixtures().knowledge_failure = Some(code);
    }

    /// Closes the client's connection.
    pub fn disconnect(&self) {
        self.state.fixtures().client_is_gone = true;
    }

    /// What the handler did so far.
    pub fn recorded(&self) -> RecordedEffects {
        self.state.effects().clone()
    }

    fn answer(&self, call: &CapabilityCall) -> Result<Value, CapabilityError> {
        let providers = self.providers.lock().unwrap_or_else(PoisonError::into_inner);
        match providers.get(&call.capability) {
            Some(provider) => provider(&call.method, &call.args),
            None => Err(not_faked(&call.capability, &call.method)),
        }
    }
}

fn not_faked(capability: &Capability, method: &str) -> CapabilityError {
    let message = format!("{capability}.{method} is not part of the fake context");
    CapabilityError::new(CapabilityErrorCode::NotAvailable, message)
}

impl Context for FakeContext {
    fn facts(&self) -> &CallFacts {
        &self.facts
    }

    fn now(&self) -> SystemTime {
        self.now
    }

    fn log(&self, level: LogLevel, text: &str) {
        self.state.effects().logs.push((level, text.to_owned()));
    }

    fn report_fault(&self, fault: HandlerFault) {
        self.state.effects().faults.push(fault);
    }

    fn audit(&self, event: &str, data: Value) {
        self.state.effects().audits.push((event.to_owned(), data));
    }

    fn progress(&self, text: &str) {
        self.state.effects().progress.push(text.to_owned());
    }

    fn emit(&self, chunk: Value) -> bool {
        self.state.effects().partial.push(chunk);
        true
    }

    fn signal(&self) -> CancellationToken {
        self.signal.clone()
    }

    fn mark_outside_effect(&self) {
        self.state.effects().reached_outside = true;
    }

    fn has_outside_effect(&self) -> bool {
        self.state.effects().reached_outside
    }

    fn request(&self, call: CapabilityCall) -> BoxFuture<Result<Value, CapabilityError>> {
        Box::pin(std::future::ready(self.answer(&call)))
    }
}
