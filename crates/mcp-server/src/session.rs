//! One session of a client: its turns, its calls, and what happens beside their answers.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quarterdeck_contracts::SideEffects;
use quarterdeck_contracts::telemetry::{Attribute, AttributeValue, SpanOrigin, TraceContext, names};
use quarterdeck_runtime::{
    Answer, Batch, Call, ClientEvent, ConfirmationMode, Connection, DeliveryReason, PendingEnd, Session,
};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::sessions::SessionCount;

/// How many answers of writes are kept whose requests were given up.
const MAX_LATE_ANSWERS: usize = 256;
/// How much may wait for a request that is slow to pass it on. What is beyond it is not passed on.
const MAX_QUEUED_EVENTS: usize = 64;

/// A session of the orchestrator, shared by the requests of one client. It ends with its last handle.
pub(crate) struct McpSession {
    /// The first to be dropped: kept answers would come back as its events.
    connection: Connection,
    submitted: Mutex<Submitted>,
    /// Requests that want to hear of their call, by its id.
    listeners: Mutex<HashMap<Arc<str>, mpsc::Sender<ClientEvent>>>,
    /// Answers of writes whose requests were given up. While they are here, an equal write is answered from the record.
    late: Mutex<VecDeque<Answer>>,
    used_ms: AtomicU64,
    /// When the client was last looked up.
    checked_ms: AtomicU64,
    count: SessionCount,
    ending: EndOnDrop,
}

/// What has been submitted so far.
#[derive(Default)]
struct Submitted {
    calls: u64,
    /// By what the client groups the calls of the present turn.
    turn: Option<String>,
}

/// A call that was handed over.
pub(crate) struct SubmittedCall {
    pub(crate) id: Arc<str>,
    pub(crate) batch: Batch,
    /// What happened since the turn before without the model's seeing it.
    pub(crate) notes: Vec<String>,
}

/// What the span of every call says about its protocol.
static CALL_ATTRIBUTES: [Attribute; 2] = [
    (names::MCP_METHOD_NAME, AttributeValue::Text(Cow::Borrowed("tools/call"))),
    (names::CHANNEL, AttributeValue::Text(Cow::Borrowed("mcp"))),
];

/// A call as a request has it.
pub(crate) struct RequestedCall {
    pub(crate) name: String,
    pub(crate) args: Value,
    /// Names this call and no other, also when it is sent again.
    pub(crate) stable_id: Option<String>,
    /// By what the client groups calls into turns.
    pub(crate) turn: Option<String>,
    /// The span that it is a part of.
    pub(crate) parent: Option<TraceContext>,
}

impl McpSession {
    pub(crate) fn new(session: &Session, now_ms: u64, count: SessionCount) -> Self {
        Self {
            // A request for approval is a protocol of its own here, so the call is answered first.
            connection: session.connect_with(ConfirmationMode::AnswerFirst),
            submitted: Mutex::default(),
            listeners: Mutex::default(),
            late: Mutex::default(),
            used_ms: AtomicU64::new(now_ms),
            checked_ms: AtomicU64::new(now_ms),
            count,
            ending: EndOnDrop(Some(session.clone())),
        }
    }

    /// Takes it apart without ending the session.
    pub(crate) fn into_parts(self) -> (Session, SessionCount) {
        let Self { connection, count, mut ending, .. } = self;
        ending.0 = None;
        (connection.session(), count)
    }

    pub(crate) fn session(&self) -> Session {
        self.connection.session()
    }

    /// Whether there is a tool of this name for its client. Why one may not be called is for the gates to say.
    pub(crate) fn offers(&self, name: &str) -> bool {
        self.session().snapshot().find(name).is_some()
    }

    pub(crate) fn mark_used(&self, now_ms: u64) {
        self.used_ms.store(now_ms, Ordering::Relaxed);
    }

    pub(crate) fn used_ms(&self) -> u64 {
        self.used_ms.load(Ordering::Relaxed)
    }

    /// Whether the client was let in longer ago than this.
    pub(crate) fn needs_check(&self, now_ms: u64, after_ms: u64) -> bool {
        now_ms.saturating_sub(self.checked_ms.load(Ordering::Relaxed)) >= after_ms
    }

    /// The client was looked up, and let in.
    pub(crate) fn mark_checked(&self, now_ms: u64) {
        self.checked_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Hands over a call, in a turn of its own or in the one that the client names.
    pub(crate) fn submit(&self, call: RequestedCall) -> SubmittedCall {
        let session = self.session();
        // Until the call is handed over, no other one begins a turn.
        let mut submitted = lock(&self.submitted);
        let mut notes = Vec::new();
        if call.turn.is_none() || call.turn != submitted.turn {
            let start = session.begin_turn(None);
            session.store_soon(start.told);
            notes = start.notes;
            submitted.turn = call.turn;
        }
        submitted.calls += 1;
        // The client's own numbers come again with its next connection, so they name nothing. Ours are too short to be
        // taken for stable.
        let id = call.stable_id.unwrap_or_else(|| format!("m{}", submitted.calls));
        let origin = SpanOrigin {
            parent: call.parent,
            request: Some("tools/call"),
            attributes: &CALL_ATTRIBUTES,
            ..SpanOrigin::default()
        };
        let call = Call::new(call.name, call.args).with_id(id.as_str()).with_origin(origin);
        let batch = self.connection.submit(vec![call]);
        SubmittedCall { id: id.into(), batch, notes }
    }

    /// Passes on what happens beside the answer of a call, until [`Self::stop_listening`].
    pub(crate) fn listen(&self, call_id: &Arc<str>) -> mpsc::Receiver<ClientEvent> {
        let (sender, receiver) = mpsc::channel(MAX_QUEUED_EVENTS);
        lock(&self.listeners).insert(call_id.clone(), sender);
        receiver
    }

    pub(crate) fn stop_listening(&self, call_id: &str) {
        lock(&self.listeners).remove(call_id);
    }

    /// Waits until there is something for [`Self::pass_on`].
    /// `false` if there never will be.
    pub(crate) async fn event_ready(&self) -> bool {
        self.connection.event_ready().await
    }

    /// Gives everything that has happened to those who listen.
    pub(crate) fn pass_on(&self) {
        // Under one lock, so that a request that has called this finds its events where it listens.
        let listeners = lock(&self.listeners);
        while let Some(event) = self.connection.try_next_event() {
            match event {
                ClientEvent::Progress { ref call_id, .. } | ClientEvent::Partial { ref call_id, .. } => {
                    if let Some(listener) = listeners.get(call_id) {
                        // A reader that is behind misses some of it.
                        let _ = listener.try_send(event);
                    }
                }
                ClientEvent::Answer { reason: DeliveryReason::Late, answer } => self.keep(answer),
                ClientEvent::Answer { answer, .. } => answer.mark_delivered(),
                // Who made the call has found the request for approval with its answer.
                ClientEvent::Confirmation { .. }
                | ClientEvent::Message(_)
                | ClientEvent::End(_)
                | ClientEvent::Blocked { .. } => {}
            }
        }
    }

    /// Keeps the answer of a write that no request has received. One that only read may be read again.
    fn keep(&self, answer: Answer) {
        let session = self.session();
        let tool = session.snapshot().find(&answer.name);
        if !tool.is_some_and(|tool| tool.metadata().side_effects == SideEffects::Writes) {
            return answer.mark_delivered();
        }
        let mut late = lock(&self.late);
        late.push_back(answer);
        if late.len() > MAX_LATE_ANSWERS
            && let Some(oldest) = late.pop_front()
        {
            tracing::warn!(
                session = session.id(),
                "answer of a write forgotten: its client has not asked again"
            );
            oldest.mark_delivered();
        }
    }
}

/// Ends a session whose client has closed it.
struct EndOnDrop(Option<Session>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if let Some(session) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move { session.end(PendingEnd::with_reason("client_closed")).await });
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
