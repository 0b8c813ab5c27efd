//! A session for calls from the terminal and from case files: one client, a store in memory, and the real orchestrator.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use quarterdeck_calendar::{CalendarConfig, Calendars, parse_given_events};
use quarterdeck_contracts::handler::HandlerFault;
use quarterdeck_contracts::{
    Case, CaseClient, Commit, ConfirmationAnswer, ConfirmationRequest, KnowledgeRecord, Mode, Store, Table,
    ToolResponse, shown_arguments, visible,
};
use quarterdeck_knowledge::{KnowledgeBase, PathDefaults, read_jsonl};
use quarterdeck_runtime::audit::{AuditEvent, AuditSink};
use quarterdeck_runtime::gates::ClientFacts;
use quarterdeck_runtime::{
    Answer, Call, Client, ClientEvent, Clock, ConfirmationDecision, ConfirmationMode, Connection,
    DecisionSource, DeliveryReason, Orchestrator, Policy, Reply, RuntimeParts, Session, Snapshot,
    SystemClock, Topics,
};
use quarterdeck_store::MemoryStore;
use serde_json::Value;

use crate::config::default_topics;
use crate::handler_kinds;
use crate::recorded_fetches::{RecordedFetches, Recording};
use crate::terminal::info;

/// The time of guides' examples, so that a date in one of them does not go out of date.
const EXAMPLE_TIME: &str = "2026-01-01T00:00:00Z";

const CLIENT: &str = "terminal";

/// What the sessions of one command share.
pub(crate) struct LocalWorld {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) recorded: Arc<RecordedFetches>,
}

pub(crate) struct LocalSession {
    session: Session,
    connection: Connection,
    recorder: Arc<GateRecorder>,
    /// What background tasks came to.
    ended_tasks: Vec<Arc<ToolResponse>>,
    recorded: Arc<RecordedFetches>,
    /// Whether messages, questions and logs of handlers are printed.
    is_verbose: bool,
}

pub(crate) struct CallResult {
    pub(crate) response: Arc<ToolResponse>,
    /// What went wrong inside the handler, if it failed for that.
    pub(crate) fault: Option<HandlerFault>,
    /// The trace of the gates, as the audit log has it.
    pub(crate) gates: Value,
}

impl LocalSession {
    pub(crate) async fn for_case(case: &Case, world: &LocalWorld) -> Result<Self, String> {
        let clock: Arc<dyn Clock> = match &case.now {
            None => Arc::new(SystemClock),
            Some(text) => {
                let now: Timestamp =
                    text.parse().map_err(|_| format!("`now` is {text:?}, not an RFC 3339 time"))?;
                Arc::new(StoppedClock(now.into()))
            }
        };
        let store = Arc::new(MemoryStore::new());
        let mut kb = Vec::new();
        let client = client(case.given.as_ref().and_then(|given| given.client.as_ref()))?;
        if let Some(given) = &case.given {
            let commit = parse_given_events(&given.calendar, &client.id)?
                .into_iter()
                .fold(Commit::default(), |commit, (key, row)| commit.put(Table::Calendar, key, row));
            store.commit(commit).await.map_err(|error| error.to_string())?;
            kb = parse_records(&given.kb)?;
        }
        let setup = SessionSetup {
            mode: case.mode.unwrap_or(Mode::Text),
            client,
            clock,
            store,
            sources: LocalSources::for_case(kb)?,
            is_verbose: false,
        };
        let session = Self::new(setup, world).await.map_err(|error| error.to_string())?;
        match &case.given {
            Some(given) if !given.fetch.is_empty() => session.record_fetches(Recording::new(&given.fetch)?),
            _ => {}
        }
        Ok(session)
    }

    pub(crate) async fn for_examples(mode: Mode, world: &LocalWorld) -> anyhow::Result<Self> {
        let setup = SessionSetup {
            mode,
            client: Client::anonymous(CLIENT),
            clock: Arc::new(StoppedClock(EXAMPLE_TIME.parse::<Timestamp>()?.into())),
            store: Arc::new(MemoryStore::new()),
            sources: LocalSources::for_case(Vec::new()).map_err(|error| anyhow::anyhow!(error))?,
            is_verbose: false,
        };
        Self::new(setup, world).await
    }

    /// Prints what a handler logs and sends.
    pub(crate) async fn for_terminal(
        mode: Mode,
        client: Client,
        world: &LocalWorld,
        sources: LocalSources,
    ) -> anyhow::Result<Self> {
        let (clock, store) = (Arc::new(SystemClock), Arc::new(MemoryStore::new()));
        Self::new(SessionSetup { mode, client, clock, store, sources, is_verbose: true }, world).await
    }

    async fn new(setup: SessionSetup, world: &LocalWorld) -> anyhow::Result<Self> {
        let SessionSetup { mode, client, clock, store, sources, is_verbose } = setup;
        let recorder = Arc::new(GateRecorder::default());
        let mut policy = Policy::default();
        if !is_verbose {
            // Tests do not wait between retries.
            (policy.text.backoff_ms, policy.voice.backoff_ms) = (1, 1);
        }
        let orchestrator = Orchestrator::new(RuntimeParts {
            policy,
            clock,
            audit: recorder.clone(),
            calendar: Some(Arc::new(sources.calendar)),
            knowledge: sources.kb.map(|kb| Arc::new(kb) as _),
            capabilities: handler_kinds::capabilities(),
            topics: sources.topics,
            log_sink: is_verbose.then(|| Arc::new(|text: &str| info(text)) as _),
            ..RuntimeParts::new(store)
        });
        let session = orchestrator.open(client, mode, world.snapshot.clone()).await?;
        session.begin_turn(None);
        let connection = session.connect_with(ConfirmationMode::AnswerFirst);
        Ok(Self {
            session,
            connection,
            recorder,
            ended_tasks: Vec::new(),
            recorded: world.recorded.clone(),
            is_verbose,
        })
    }

    /// Answers the requests of handlers from now on; nothing is sent.
    pub(crate) fn record_fetches(&self, recording: Recording) {
        self.recorded.set(self.session.id(), recording);
    }

    pub(crate) fn begin_turn(&mut self) {
        self.session.begin_turn(None);
    }

    /// The user says something in this turn.
    pub(crate) fn add_user_words(&mut self, words: &str) {
        self.session.add_user_words(words);
    }

    /// Runs one call. A request for confirmation is answered with `answer`.
    pub(crate) async fn call(&mut self, call: Call, answer: Option<ConfirmationAnswer>) -> CallResult {
        self.recorder.clear();
        let replies = self.connection.submit(vec![call]).all().await;
        let asked = replies.into_iter().next().and_then(Reply::into_answer);
        let gates = self.recorder.gates();
        let question = self.read_events();
        let answered = match (question, answer) {
            (Some(question), Some(answer)) => {
                let token = question.token.as_ref().map_or("", |token| token.expose());
                let decision = ConfirmationDecision::new(answer, DecisionSource::Terminal);
                Some(self.session.resolve_confirmation(token, decision).await)
            }
            _ => asked,
        };
        let response = answered.map(take_response).unwrap_or_else(|| unreachable!("one call has one reply"));
        let response = self.wait_for_task(response).await;
        self.read_events();
        // One that was left by an attempt before the last is not the reason of a success.
        let fault = self.session.take_fault().filter(|_| !response.is_ok());
        CallResult { response, fault, gates }
    }

    /// What a call came to that goes on in the background: the process would take its task with it.
    async fn wait_for_task(&mut self, response: Arc<ToolResponse>) -> Arc<ToolResponse> {
        if response.meta.background_task_id.is_none() {
            return response;
        }
        let id = &response.meta.background_task_id;
        self.read_events();
        loop {
            if let Some(ended) = self.ended_tasks.iter().find(|ended| ended.meta.background_task_id == *id) {
                return ended.clone();
            }
            match self.connection.next_event().await {
                Some(event) => drop(self.take_event(event)),
                None => return response,
            }
        }
    }

    /// Prints the events, and returns the request for confirmation among them.
    fn read_events(&mut self) -> Option<ConfirmationRequest> {
        let mut asked = None;
        while let Some(event) = self.connection.try_next_event() {
            asked = self.take_event(event).or(asked);
        }
        asked
    }

    fn take_event(&mut self, event: ClientEvent) -> Option<ConfirmationRequest> {
        match event {
            ClientEvent::Message(message) => {
                self.info(&format!("message: {}", visible(&message.to_string())));
            }
            ClientEvent::Confirmation { request, .. } => {
                let arguments = shown_arguments(&request.args);
                let reason =
                    request.reason.as_deref().map(|reason| format!("\n{reason}")).unwrap_or_default();
                self.info(&format!("confirmation needed: {}{reason}\n{arguments}", request.preview));
                return Some(request);
            }
            ClientEvent::Answer { reason: DeliveryReason::TaskEnded, answer } => {
                self.ended_tasks.push(take_response(answer));
            }
            ClientEvent::Answer { answer, .. } => drop(take_response(answer)),
            ClientEvent::Progress { .. }
            | ClientEvent::Partial { .. }
            | ClientEvent::End(_)
            | ClientEvent::Blocked { .. } => {}
        }
        None
    }

    fn info(&self, text: &str) {
        if self.is_verbose {
            info(text);
        }
    }
}

impl Drop for LocalSession {
    fn drop(&mut self) {
        self.recorded.remove(self.session.id());
    }
}

struct SessionSetup {
    mode: Mode,
    client: Client,
    clock: Arc<dyn Clock>,
    store: Arc<dyn Store>,
    sources: LocalSources,
    is_verbose: bool,
}

/// The client of a session: one who has signed in, if it is given.
pub(crate) fn client(given: Option<&CaseClient>) -> Result<Client, String> {
    const MAX_ID_CHARS: usize = 128;
    let Some(CaseClient { id, claims }) = given else { return Ok(Client::anonymous(CLIENT)) };
    let id = id.clone().unwrap_or_else(|| CLIENT.into());
    if id.is_empty() || id.chars().count() > MAX_ID_CHARS || id.contains(char::is_control) {
        return Err(format!("a client's id has 1 to {MAX_ID_CHARS} characters on one line"));
    }
    let facts = ClientFacts { authenticated: true, claims: claims.clone() };
    Ok(Client::known(id, Arc::new(facts)))
}

/// Parses the records of a case like a file of JSON lines.
fn parse_records(given: &[Value]) -> Result<Vec<KnowledgeRecord>, String> {
    let lines: String = given.iter().map(|record| format!("{record}\n")).collect();
    let (records, faults) =
        read_jsonl(lines.as_bytes(), &PathDefaults::default()).map_err(|error| error.to_string())?;
    match faults.first() {
        Some(fault) => Err(format!("record {} of `given.kb`: {}", fault.line, fault.message)),
        None => Ok(records.into_iter().map(|(record, _)| record).collect()),
    }
}

/// The knowledge base and the calendar of a session.
pub(crate) struct LocalSources {
    pub(crate) kb: Option<KnowledgeBase>,
    pub(crate) calendar: Calendars,
    /// The lists of topics about which tools ask.
    pub(crate) topics: Topics,
}

impl LocalSources {
    /// Independent of the configuration: a case has the same result on every machine.
    fn for_case(records: Vec<KnowledgeRecord>) -> Result<Self, String> {
        let kb = KnowledgeBase::from_records(records, None, None).map_err(|error| error.to_string())?;
        let calendar = Calendars::local(CalendarConfig::default()).map_err(|error| error.to_string())?;
        Ok(Self { kb: Some(kb), calendar, topics: default_topics() })
    }
}

fn take_response(answer: Answer) -> Arc<ToolResponse> {
    let response = answer.response.clone();
    answer.mark_delivered();
    response
}

struct StoppedClock(SystemTime);

impl Clock for StoppedClock {
    fn now(&self) -> SystemTime {
        self.0
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// Keeps the gates' traces of the last call.
#[derive(Default)]
struct GateRecorder(Mutex<VecDeque<Value>>);

impl GateRecorder {
    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clear(&self) {
        self.lock().clear();
    }

    /// The outermost call is the last to be recorded.
    fn gates(&self) -> Value {
        self.lock().pop_back().unwrap_or_default()
    }
}

impl AuditSink for GateRecorder {
    fn record(&self, event: AuditEvent) {
        // Events of handlers have a source; one of them may have the same name.
        if &*event.event == "tool_execution" && !event.fields.contains_key("source") {
            let gates = event.fields.get("gates").cloned().unwrap_or_default();
            self.lock().push_back(gates);
        }
    }
}
