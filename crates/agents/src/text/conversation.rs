//! A session with its history and the turn that runs in it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use quarterdeck_contracts::{ChatMessage, ConfirmationRequest, ErrorType, ToolResponse};
use quarterdeck_runtime::Session;
use quarterdeck_runtime::gates::Trace;

use super::event::{Failure, StreamEvent};
use super::held::{HeldBytes, written_bytes};
use super::history::TurnRecord;
use super::listing::Listing;
use super::memory::{AnswerMemory, MAX_CONVERSATION_BYTES, MAX_IDLE_BYTES};
use super::stream::EventStream;
use crate::turn::{Ending, TurnEvent};

/// A session with its history and the turn that runs in it.
pub(super) struct Conversation {
    pub(super) session: Session,
    /// When its first turn began, in milliseconds since 1970.
    began_ms: u64,
    state: Mutex<ConversationState>,
    /// When it was last used, in milliseconds since 1970.
    used_ms: AtomicU64,
    /// Whether the user has deleted it: nothing more of it is stored.
    is_deleted: AtomicBool,
}

#[derive(Default)]
pub(super) struct ConversationState {
    pub(super) turns: Vec<TurnRecord>,
    pub(super) running: Option<RunningTurn>,
    /// Open confirmation requests with their tokens: to be shown again, never to be stored.
    pub(super) confirmations: Vec<OpenConfirmation>,
    /// Confirmations resolved while their turn is still running.
    pub(super) resolved_early: Vec<ResolvedConfirmation>,
    /// The last turn of a protocol in which the client keeps the conversation, in case of a retry.
    pub(super) last_transcribed: Option<TurnRecord>,
    /// Notes that the model has not been given yet.
    pub(super) notes: Vec<String>,
    /// How many trimmed turns the client has been told of.
    pub(super) reported_trimmed: usize,
    /// Its place in the list of conversations, once it has one.
    pub(super) listing: Option<Listing>,
    held: HeldBytes,
}

#[derive(Clone)]
pub(super) struct RunningTurn {
    pub(super) stream: Arc<EventStream>,
    /// What makes a second delivery of the same message known.
    pub(super) key: Option<Arc<str>>,
}

/// The right to run a turn in a conversation. Dropping it lets the next one start.
pub(super) struct TurnGuard {
    pub(super) conversation: Arc<Conversation>,
    pub(super) stream: Arc<EventStream>,
}

impl Drop for TurnGuard {
    fn drop(&mut self) {
        let mut state = self.conversation.lock();
        if state.running.as_ref().is_some_and(|running| Arc::ptr_eq(&running.stream, &self.stream)) {
            state.running = None;
        }
        drop(state);
        self.stream.close();
    }
}

#[derive(Clone)]
pub(super) struct ResolvedConfirmation {
    pub(super) call_id: Arc<str>,
    pub(super) response: Arc<ToolResponse>,
    pub(super) gates: Option<Arc<Trace>>,
}

/// A confirmation request that waits for a reply.
#[derive(Clone)]
pub(super) struct OpenConfirmation {
    pub(super) call_id: Arc<str>,
    pub(super) request: Arc<ConfirmationRequest>,
}

impl Conversation {
    pub(super) fn new(session: Session, state: ConversationState, now_ms: u64) -> Arc<Self> {
        let began_ms = state.turns.first().map_or(now_ms, |first| first.at_ms);
        let (state, used_ms) = (Mutex::new(state), AtomicU64::new(now_ms));
        Arc::new(Self { session, began_ms, state, used_ms, is_deleted: AtomicBool::new(false) })
    }

    /// What is left of it without its session.
    pub(super) fn into_state(self) -> ConversationState {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ConversationState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn began(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(self.began_ms)
    }

    pub(super) fn mark_deleted(&self) {
        self.is_deleted.store(true, Ordering::Release);
    }

    pub(super) fn is_deleted(&self) -> bool {
        self.is_deleted.load(Ordering::Acquire)
    }

    pub(super) fn touch(&self, now_ms: u64) {
        self.used_ms.store(now_ms, Ordering::Relaxed);
    }

    pub(super) fn used_ms(&self) -> u64 {
        self.used_ms.load(Ordering::Relaxed)
    }

    /// Starts a turn, or returns the one that is running.
    pub(super) fn try_start_turn(
        self: &Arc<Self>,
        key: Option<&str>,
        memory: &AnswerMemory,
    ) -> Result<TurnGuard, RunningTurn> {
        let mut state = self.lock();
        if let Some(running) = &state.running {
            return Err(running.clone());
        }
        let stream = EventStream::new(memory.answer_counter());
        state.running = Some(RunningTurn { stream: stream.clone(), key: key.map(Arc::from) });
        Ok(TurnGuard { conversation: self.clone(), stream })
    }

    /// The last turn, if it is not over.
    pub(super) fn unfinished(&self) -> Option<TurnRecord> {
        self.lock().turns.last().filter(|record| record.turn.ending().is_none()).cloned()
    }

    pub(super) fn is_running(&self) -> bool {
        self.lock().running.is_some()
    }

    /// Whether another node could go on with it as well as this one: no question waits whose token is known here alone, and
    /// no answer that a client of a protocol without a memory may ask for again.
    pub(super) fn is_settled(&self) -> bool {
        let state = self.lock();
        let is_open =
            |confirmation: &OpenConfirmation| self.session.is_confirmation_open(&confirmation.request);
        state.last_transcribed.is_none() && !state.confirmations.iter().any(is_open)
    }

    /// Whether it takes so much that it is read from the store again rather than kept, and nothing is lost by that.
    pub(super) fn is_large_and_stored(&self) -> bool {
        let state = self.lock();
        state.held.bytes() > MAX_IDLE_BYTES && state.is_stored()
    }

    pub(super) fn is_stored(&self) -> bool {
        self.lock().is_stored()
    }

    /// Records the outcome of a confirmation whose turn waits, soon will, or is over. Returns the record if it was changed.
    pub(super) fn record_resolution(&self, resolved: &ResolvedConfirmation) -> Option<TurnRecord> {
        let mut state = self.lock();
        state.confirmations.retain(|confirmation| confirmation.call_id != resolved.call_id);
        if state.running.is_some() {
            // The turn that runs has its own record, and looks here when it is done.
            state.resolved_early.push(resolved.clone());
        }
        let record = state.turns.last_mut()?;
        if record.record_resolution(resolved.clone()) {
            return Some(record.clone());
        }
        let mut over = state.turns.iter_mut().rev().filter(|record| record.turn.ending().is_some());
        over.find_map(|record| record.record_late_resolution(resolved).then(|| record.clone()))
    }
}

impl ConversationState {
    pub(super) fn new(turns: Vec<TurnRecord>, listing: Option<Listing>, memory: &AnswerMemory) -> Self {
        let mut state = Self { turns, listing, held: memory.conversation_counter(), ..Self::default() };
        state.recount_bytes();
        state
    }

    /// The conversation before the present turn, without the oldest turns that do not fit.
    pub(super) fn before(&self, number: u64, trimmed_turns: usize) -> Vec<ChatMessage> {
        let turns = self.turns.iter().skip(trimmed_turns);
        let counted = turns.filter(|record| record.number != number && !record.is_replaced);
        counted.flat_map(|record| record.turn.messages().iter().cloned()).collect()
    }

    /// Applies confirmations that were resolved while the turn ran.
    pub(super) fn apply_early_resolutions(&mut self, record: &mut TurnRecord) {
        for resolved in self.resolved_early.drain(..) {
            record.record_resolution(resolved);
        }
    }

    pub(super) fn keep(&mut self, mut record: TurnRecord) {
        record.bytes = written_bytes(&record);
        match self.turns.iter_mut().find(|known| known.number == record.number) {
            Some(known) => *known = record,
            None => self.turns.push(record),
        }
        self.recount_bytes();
    }

    /// Keeps the last turn of a conversation that the client keeps; its text only when that is little.
    pub(super) fn set_transcribed(&mut self, mut record: TurnRecord) {
        record.bytes = written_bytes(&record);
        if record.bytes > MAX_IDLE_BYTES {
            record.drop_text();
            record.bytes = written_bytes(&record);
        }
        self.last_transcribed = Some(record);
        self.recount_bytes();
    }

    /// Counts what the turns take, and leaves the oldest to the store when it is too much.
    pub(super) fn recount_bytes(&mut self) {
        let all = self.turns.iter().chain(&self.last_transcribed);
        let mut bytes: usize = all.map(|record| record.bytes).sum();
        let mut excess = 0;
        for record in self.turns.iter().take(self.turns.len().saturating_sub(1)) {
            if bytes <= MAX_CONVERSATION_BYTES || record.turn.ending().is_none() {
                break;
            }
            bytes -= record.bytes;
            excess += 1;
        }
        self.turns.drain(..excess);
        self.held.set(bytes);
    }

    /// Turns of the sessions before this one are found again by its place in the list.
    fn is_stored(&self) -> bool {
        self.running.is_none()
            && self.confirmations.is_empty()
            && self.notes.is_empty()
            && self.resolved_early.is_empty()
            && self.last_transcribed.is_none()
            && (self.listing.is_some() || self.turns.iter().all(|record| record.number > 0))
    }

    /// The events of a turn that this message has started before.
    pub(super) fn replay(&self, key: &str, session_id: &Arc<str>) -> Option<Vec<StreamEvent>> {
        let has_key = |record: &&TurnRecord| record.key.as_deref() == Some(key);
        let record = self.turns.iter().find(has_key).or(self.last_transcribed.as_ref().filter(has_key))?;
        let mut events = vec![StreamEvent::Started {
            message_id: record.message_id.clone(),
            session_id: session_id.clone(),
        }];
        for event in record.turn.events() {
            events.push(match event {
                TurnEvent::Round => StreamEvent::RoundStarted,
                TurnEvent::Text(text) => StreamEvent::Text(text.into()),
                TurnEvent::Call(call) => StreamEvent::ToolCall(Arc::new(call)),
                TurnEvent::Answer(id, response) => {
                    let gates = record.gates_of(&id);
                    StreamEvent::ToolResult { id: id.into(), response: response.clone(), gates }
                }
            });
        }
        let unresolved: Vec<&str> = record.turn.unresolved().collect();
        let confirmations =
            self.confirmations.iter().filter(|confirmation| unresolved.contains(&&*confirmation.call_id));
        events.extend(confirmations.map(|confirmation| StreamEvent::ConfirmationRequest {
            id: confirmation.call_id.clone(),
            request: confirmation.request.clone(),
        }));
        let ending = record.turn.ending().cloned();
        if ending == Some(Ending::Failed) {
            let message = "The answer to this message broke off. Please ask again.".into();
            events.push(StreamEvent::Failed(Failure {
                kind: ErrorType::Transient,
                message,
                retryable: true,
                cause: None,
                retry_after: None,
            }));
        }
        events.push(StreamEvent::Finished { ending, usage: record.turn.usage() });
        Some(events)
    }
}
