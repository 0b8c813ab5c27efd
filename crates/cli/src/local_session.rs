//! A world for calls that come from the terminal and from case files: one client, one session, a store in memory, and
//! the real orchestrator around them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use quarterdeck_calendar::{CalendarConfig, LocalCalendar, parse_given_events};
use quarterdeck_contracts::{
    Case, Commit, ConfirmationAnswer, ConfirmationRequest, KnowledgeRecord, Mode, Store, Table, ToolResponse,
    shown_arguments, visible,
};
use quarterdeck_knowledge::{KnowledgeBase, PathDefaults, read_jsonl};
use quarterdeck_runtime::audit::{AuditEvent, AuditSink};
use quarterdeck_runtime::{
    Answer, Call, Client, ClientEvent, Clock, ConfirmationMode, Connection, Orchestrator, Policy, Reply,
    RuntimeParts, Session, Snapshot, SystemClock,
};
use quarterdeck_store::MemoryStore;
use serde_json::Value;

use crate::handler_kinds;
use crate::terminal::say;

/// When the examples of guides take place, so that a date in one of them does not go out of date.
const EXAMPLES: &str = "2026-01-01T00:00:00Z";

/// The client of every case and of the terminal.
const CLIENT: &str = "terminal";

/// One client and one session.
pub(crate) struct CaseFixtures {
    session: Session,
    connection: Connection,
    trail: Arc<LastCall>,
    speaks: bool,
}

/// What a call came to.
pub(crate) struct Came {
    pub(crate) response: Arc<ToolResponse>,
    /// What the gates said, as it stands in the audit trail.
    pub(crate) gates: Value,
}

impl CaseFixtures {
    /// The world that a case describes.
    pub(crate) async fn of(case: &Case, snapshot: &Arc<Snapshot>) -> Result<Self, String> {
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
        if let Some(given) = &case.given {
            let commit = parse_given_events(&given.calendar, CLIENT)?
                .into_iter()
                .fold(Commit::default(), |commit, (key, row)| commit.put(Table::Calendar, key, row));
            store.commit(commit).await.map_err(|error| error.to_string())?;
            kb = records(&given.kb)?;
        }
        let mode = case.mode.unwrap_or(Mode::Text);
        Self::new(mode, clock, store, Books::of_case(kb)?, snapshot, false)
            .await
            .map_err(|error| error.to_string())
    }

    /// The world of a guide's examples.
    pub(crate) async fn of_examples(mode: Mode, snapshot: &Arc<Snapshot>) -> anyhow::Result<Self> {
        let clock = Arc::new(StoppedClock(EXAMPLES.parse::<Timestamp>()?.into()));
        let books = Books::of_case(Vec::new()).map_err(|error| anyhow::anyhow!(error))?;
        Self::new(mode, clock, Arc::new(MemoryStore::new()), books, snapshot, false).await
    }

    /// A world for someone at a terminal, who sees what a handler logs and sends.
    pub(crate) async fn at_terminal(
        mode: Mode,
        snapshot: &Arc<Snapshot>,
        books: Books,
    ) -> anyhow::Result<Self> {
        Self::new(mode, Arc::new(SystemClock), Arc::new(MemoryStore::new()), books, snapshot, true).await
    }

    async fn new(
        mode: Mode,
        clock: Arc<dyn Clock>,
        store: Arc<dyn Store>,
        books: Books,
        snapshot: &Arc<Snapshot>,
        speaks: bool,
    ) -> anyhow::Result<Self> {
        let trail = Arc::new(LastCall::default());
        let mut policy = Policy::default();
        if !speaks {
            // Nobody waits for a test out of courtesy to a server.
            (policy.text.backoff_ms, policy.voice.backoff_ms) = (1, 1);
        }
        let orchestrator = Orchestrator::new(RuntimeParts {
            policy,
            clock,
            audit: trail.clone(),
            calendar: Some(Arc::new(books.calendar)),
            knowledge: books.kb.map(|kb| Arc::new(kb) as _),
            capabilities: handler_kinds::capabilities(),
            watch: speaks.then(|| Arc::new(|text: &str| say(text)) as _),
            ..RuntimeParts::new(store)
        });
        let session = orchestrator.open(Client::anonymous(CLIENT), mode, snapshot.clone()).await?;
        session.begin_turn(None);
        let connection = session.connect_with(ConfirmationMode::AnswerFirst);
        Ok(Self { session, connection, trail, speaks })
    }

    pub(crate) fn begin_turn(&mut self) {
        self.session.begin_turn(None);
    }

    /// Runs one call in this world, in which the person answers a request for confirmation with `answer`.
    pub(crate) async fn call(&mut self, call: Call, answer: Option<ConfirmationAnswer>) -> Came {
        self.trail.forget();
        let replies = self.connection.submit(vec![call]).all().await;
        let asked = replies.into_iter().next().and_then(Reply::into_answer);
        let gates = self.trail.gates();
        let question = self.read_events();
        let answered = match (question, answer) {
            (Some(question), Some(answer)) => {
                let token = question.token.as_ref().map_or("", |token| token.expose());
                Some(self.session.resolve_confirmation(token, answer).await)
            }
            _ => asked,
        };
        self.read_events();
        let response = answered.map(taken).unwrap_or_else(|| unreachable!("one call has one reply"));
        Came { response, gates }
    }

    /// Tells the person what happened, and gives the question that they were asked.
    fn read_events(&self) -> Option<ConfirmationRequest> {
        let mut asked = None;
        while let Some(event) = self.connection.try_next_event() {
            match event {
                ClientEvent::Message(message) => {
                    self.say(&format!("message: {}", visible(&message.to_string())))
                }
                ClientEvent::Confirmation { request, .. } => {
                    let arguments = shown_arguments(&request.args);
                    self.say(&format!("a person is asked: {}\n{arguments}", request.preview));
                    asked = Some(request);
                }
                ClientEvent::Answer { answer, .. } => drop(taken(answer)),
                ClientEvent::Progress { .. } | ClientEvent::End(_) => {}
            }
        }
        asked
    }

    fn say(&self, text: &str) {
        if self.speaks {
            say(text);
        }
    }
}

/// The records that a case gives, as they would stand in a file of JSON lines.
fn records(given: &[Value]) -> Result<Vec<KnowledgeRecord>, String> {
    let lines: String = given.iter().map(|record| format!("{record}\n")).collect();
    let (records, faults) =
        read_jsonl(lines.as_bytes(), &PathDefaults::default()).map_err(|error| error.to_string())?;
    match faults.first() {
        Some(fault) => Err(format!("record {} of `given.kb`: {}", fault.line, fault.message)),
        None => Ok(records.into_iter().map(|(record, _)| record).collect()),
    }
}

/// What handlers look things up in.
pub(crate) struct Books {
    pub(crate) kb: Option<KnowledgeBase>,
    pub(crate) calendar: LocalCalendar,
}

impl Books {
    /// Those of a case. It must come to the same on every machine, so what the site has configured does not count.
    fn of_case(records: Vec<KnowledgeRecord>) -> Result<Self, String> {
        let kb = KnowledgeBase::from_records(records, None, None).map_err(|error| error.to_string())?;
        let calendar =
            LocalCalendar::from_config(CalendarConfig::default()).map_err(|error| error.to_string())?;
        Ok(Self { kb: Some(kb), calendar })
    }
}

fn taken(answer: Answer) -> Arc<ToolResponse> {
    let response = answer.response.clone();
    answer.mark_delivered();
    response
}

/// A clock that stands still.
struct StoppedClock(SystemTime);

impl Clock for StoppedClock {
    fn now(&self) -> SystemTime {
        self.0
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// Keeps what the trail says of the last call.
#[derive(Default)]
struct LastCall(Mutex<VecDeque<Value>>);

impl LastCall {
    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self) {
        self.lock().clear();
    }

    /// The outermost call is the last to be written down.
    fn gates(&self) -> Value {
        self.lock().pop_back().unwrap_or_default()
    }
}

impl AuditSink for LastCall {
    fn record(&self, happening: AuditEvent) {
        if &*happening.event == "tool_execution" {
            let gates = happening.fields.get("gates").cloned().unwrap_or_default();
            self.lock().push_back(gates);
        }
    }
}
