//! Starts turns, and joins those that are running.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::telemetry::{Span, TraceContext};
use quarterdeck_contracts::{ChatMessage, Commit, ErrorType, Outcome, SideEffects, ToolResponse};
use quarterdeck_runtime::{ConfirmationMode, Session, SessionError, TurnStart, random_hex};

use super::codes::CodeMatch;
use super::context::TurnContext;
use super::conversation::{Conversation, RunningTurn, TurnGuard};
use super::driver::TurnDriver;
use super::event::StreamEvent;
use super::history::{self, TurnRecord};
use super::stream::{EventStream, Reader};
use super::turn_span;
use super::{Address, Message, Refusal, TextAgent, TextCore, Transcript, User};
use crate::note::format_notes;
use crate::turn::{Ending, Turn};

/// How often a conversation is taken that other nodes take at the same time.
pub(super) const MAX_TAKES: usize = 3;
/// How long a new message waits for a running turn that still has readers.
const FOLLOWED_TURN_TIMEOUT: Duration = Duration::from_millis(500);
/// How long it waits for one without readers to stop.
const ABANDONED_TURN_TIMEOUT: Duration = Duration::from_secs(2);

/// The note about a code that matches no open confirmation.
const UNKNOWN_CODE: &str = "The user replied with an approval code that answers no open question of this conversation. \
                            Nothing was approved or denied by it.";

impl TextAgent {
    /// Sends a message. The reader follows the answer; dropping the last reader aborts it.
    pub async fn send_message(
        &self,
        user: &User,
        to: Address<'_>,
        message: Message,
    ) -> Result<Reader, Refusal> {
        for _ in 1..MAX_TAKES {
            match self.try_send(user, to, message.clone()).await {
                Err(Refusal::Session(SessionError::Lost)) => {}
                other => return other,
            }
        }
        self.try_send(user, to, message).await
    }

    /// Sends a message, unless another node takes the conversation before it is stored.
    async fn try_send(&self, user: &User, to: Address<'_>, message: Message) -> Result<Reader, Refusal> {
        let agent = &self.core;
        let conversation = agent.open_for_message(user, to).await?;
        let Message { id, idempotency_key, text } = message;
        let key = idempotency_key.as_deref().or(id.as_deref());
        let guard = match agent.wait_for_turn(&conversation, key).await {
            Ok(guard) => guard,
            // A second delivery of the same message joins; another message has to wait.
            Err(running) if key.is_some() && running.key.as_deref() == key => {
                return Ok(running.stream.follow());
            }
            Err(_) => return Err(Refusal::Busy),
        };
        // The history knows every message, also those that another process has answered.
        let session_id = conversation.session.id().into();
        if let Some(events) = key.and_then(|key| conversation.lock().replay(key, &session_id)) {
            let id = conversation.session.id().to_owned();
            drop((guard, conversation));
            agent.evict_if_large(&id);
            return Ok(EventStream::of_finished(events, agent.memory.answer_counter()).follow());
        }
        let mut context = TurnContext::new(agent, &conversation, &user.situation, None);
        let TurnStart { number, answers, mut notes, told, .. } = conversation.session.begin_turn(key);
        notes.extend(context.time_note.take());
        conversation.session.add_user_words(&text);
        agent.end_suspended_turn(&conversation, answers).await;
        let with_notes = prepend_notes(&conversation, notes, &text);
        let key = key.map(str::to_owned);
        let chat = match to {
            Address::Chat(chat) => Some(chat),
            Address::New | Address::Session(_) => None,
        };
        let told = told.and(agent.list_message(&conversation, &user.client, &text, chat));
        let record = TurnRecord { key, ..agent.new_record(number, id, text, with_notes)? };
        // Before anything is done about it, so that a second delivery after a crash is known to be one.
        agent.store_turn_with(&conversation, &record, told).await?;
        Ok(agent.start_turn(guard, record, context, ConfirmationMode::Suspend, user.client.span))
    }

    /// Regenerates the last answer. What was done stays done.
    pub async fn regenerate(&self, user: &User, to: Address<'_>) -> Result<Reader, Refusal> {
        let agent = &self.core;
        let conversation = agent.find_held(user, to).await?.ok_or(Refusal::NothingToRegenerate)?;
        let guard = agent.wait_for_turn(&conversation, None).await.map_err(|_| Refusal::Busy)?;
        if conversation.lock().turns.last().is_none_or(|record| record.said.is_empty()) {
            return Err(Refusal::NothingToRegenerate);
        }
        let TurnStart { number, answers, mut notes, told, .. } = conversation.session.begin_turn(None);
        agent.end_suspended_turn(&conversation, answers).await;
        let replaced = {
            let mut state = conversation.lock();
            let Some(last) = state.turns.last_mut() else { return Err(Refusal::NothingToRegenerate) };
            last.is_replaced = true;
            last.clone()
        };
        agent.store_turn(&conversation, &replaced).await;
        notes.extend(completed_write_notes(&conversation, &replaced));
        // The same message is answered again.
        conversation.session.add_user_words(&replaced.said);
        let mut context = TurnContext::new(agent, &conversation, &user.situation, None);
        notes.extend(context.time_note.take());
        let text = prepend_notes(&conversation, notes, &replaced.said);
        let record = agent.new_record(number, replaced.person_id, replaced.said, text)?;
        if !told.is_empty() {
            agent.store_turn_with(&conversation, &record, told).await?;
        }
        Ok(agent.start_turn(guard, record, context, ConfirmationMode::Suspend, user.client.span))
    }

    /// Answers a conversation that the client sends. Calls that need confirmation are answered first and confirmed later.
    pub async fn complete(
        &self,
        user: &User,
        to: Address<'_>,
        transcript: Transcript,
    ) -> Result<Reader, Refusal> {
        let agent = &self.core;
        let Transcript { before, text, fingerprint, is_retry } = transcript;
        let matched = agent.match_code(&user.client.id, &before, &text);
        let is_reply = matches!(matched, CodeMatch::Confirmation(_));
        let mut conversation = match &matched {
            // A blocked client cannot confirm either.
            CodeMatch::Confirmation(of) => {
                agent.open_conversation(user, Address::Session(of.session.id())).await?
            }
            CodeMatch::NotACode | CodeMatch::Unknown => agent.open_conversation(user, to).await?,
        };
        let guard = match conversation.try_start_turn(Some(&fingerprint), &agent.memory) {
            Ok(guard) => guard,
            Err(running) if is_retry && running.key.as_deref() == Some(&fingerprint) => {
                return Ok(running.stream.follow());
            }
            // The confirmation belongs to this conversation, so the reply waits for the running turn.
            Err(_) if is_reply => {
                agent.wait_for_turn(&conversation, Some(&fingerprint)).await.map_err(|_| Refusal::Busy)?
            }
            // The client keeps the conversation, so another one that began the same way gets its own session.
            Err(_) => {
                conversation = agent.open_conversation(user, Address::New).await?;
                conversation.try_start_turn(Some(&fingerprint), &agent.memory).map_err(|_| Refusal::Busy)?
            }
        };
        // The client keeps the conversation, so nothing is stored that would take it for this node.
        agent.hold(&conversation).await?;
        if !matches!(matched, CodeMatch::NotACode) {
            agent.resolve_code(&conversation, &before, &text).await;
        }
        // Clients send a request again when its answer was lost on the way, and by then tools may have run.
        let earlier = conversation
            .lock()
            .last_transcribed
            .clone()
            .filter(|record| is_retry && record.has_key(&fingerprint));
        if earlier.as_ref().is_some_and(|record| record.turn.ending() == Some(&Ending::Answered))
            && let Some(events) = conversation.lock().replay(&fingerprint, &conversation.session.id().into())
        {
            return Ok(EventStream::of_finished(events, agent.memory.answer_counter()).follow());
        }
        let mut context = TurnContext::new(agent, &conversation, &user.situation, Some(before));
        let TurnStart { number, mut notes, told, .. } = conversation.session.begin_turn(None);
        notes.extend(context.time_note.take());
        conversation.session.add_user_words(&text);
        // The client keeps the conversation, so there is no record of the turn that it could be stored with.
        conversation.session.store_soon(told);
        notes.extend(earlier.iter().flat_map(|record| completed_write_notes(&conversation, record)));
        let with_notes = prepend_notes(&conversation, notes, &text);
        let key = Some(fingerprint);
        let record = TurnRecord { key, ..agent.new_record(number, None, text, with_notes)? };
        Ok(agent.start_turn(guard, record, context, ConfirmationMode::AnswerFirst, user.client.span))
    }

    /// The turn that runs in a conversation, from its start.
    pub async fn follow(&self, user: &User, to: Address<'_>) -> Result<Option<Reader>, Refusal> {
        let Some(conversation) = self.core.find(user, to).await? else { return Ok(None) };
        let running = conversation.lock().running.clone();
        Ok(running.filter(|running| !running.stream.is_closed()).map(|running| running.stream.follow()))
    }
}

impl TextCore {
    /// Starts a turn. If another one is still running after a while, returns that one instead.
    pub(super) async fn wait_for_turn(
        &self,
        conversation: &Arc<Conversation>,
        key: Option<&str>,
    ) -> Result<TurnGuard, RunningTurn> {
        let mut timeout = FOLLOWED_TURN_TIMEOUT;
        loop {
            let running = match conversation.try_start_turn(key, &self.memory) {
                Ok(guard) => return Ok(guard),
                Err(running) => running,
            };
            let is_same = key.is_some() && running.key.as_deref() == key;
            if is_same || (timeout.is_zero() && !running.stream.is_abandoned()) {
                return Err(running);
            }
            // It takes a moment until a page that was closed is known to be gone, and another to end its turn.
            let waited = if timeout.is_zero() { ABANDONED_TURN_TIMEOUT } else { timeout };
            timeout = Duration::ZERO;
            if tokio::time::timeout(waited, running.stream.closed()).await.is_err()
                && waited == ABANDONED_TURN_TIMEOUT
            {
                return Err(running);
            }
        }
    }

    /// Resolves the confirmation that a code answers, and notes for the model what it cannot know. The user's reply
    /// counts, not the model's.
    async fn resolve_code(&self, conversation: &Conversation, before: &[ChatMessage], text: &str) {
        let note = match conversation.find_reply(before, text) {
            Some(reply) => {
                let resolved = self.resolve(&conversation.session, None, &reply, None).await;
                conversation.lock().confirmations.retain(|confirmation| !confirmation.is_answered_by(&reply));
                failed_reply_note(&resolved.response)
            }
            None => Some(UNKNOWN_CODE.into()),
        };
        conversation.lock().notes.extend(note);
    }

    pub(super) fn new_record(
        &self,
        number: u64,
        person_id: Option<String>,
        said: String,
        text: String,
    ) -> Result<TurnRecord, Refusal> {
        let random = random_hex(8).ok_or(Refusal::NoRandom)?;
        Ok(TurnRecord {
            number,
            key: None,
            person_id,
            message_id: format!("msg_{random}").into(),
            said,
            at_ms: self.orchestrator.now_ms(),
            turn: Turn::begin(text, format!("call_{random}"), self.settings.rounds),
            gates: BTreeMap::new(),
            late: BTreeMap::new(),
            is_replaced: false,
            bytes: 0,
        })
    }

    fn start_turn(
        self: &Arc<Self>,
        guard: TurnGuard,
        record: TurnRecord,
        context: TurnContext,
        asking: ConfirmationMode,
        parent: Option<TraceContext>,
    ) -> Reader {
        let reader = guard.stream.follow();
        let session = &guard.conversation.session;
        if record.number == 1 {
            let (system_tokens, tool_tokens) = context.tokens();
            tracing::info!(session = session.id(), system_tokens, tool_tokens, "session started");
        }
        let _ = guard.stream.push(started_event(&guard, &record.message_id));
        {
            let mut state = guard.conversation.lock();
            if context.trimmed_turns > state.reported_trimmed {
                state.reported_trimmed = context.trimmed_turns;
                let value = serde_json::json!({ "turns": context.trimmed_turns });
                let _ = guard.stream.push(StreamEvent::Data { name: "history-trimmed".into(), value });
            }
            if context.transcript.is_none() {
                state.keep(record.clone());
            }
        }
        let connection = session.connect_with(asking);
        let span = self.begin_span(session, record.number, &context, parent);
        tokio::spawn(TurnDriver::new(self.clone(), guard, connection, record, context, span).run());
        reader
    }

    pub(super) fn begin_span(
        &self,
        session: &Session,
        turn: u64,
        context: &TurnContext,
        parent: Option<TraceContext>,
    ) -> Span {
        let model = context.asked.of(self).model.name();
        turn_span::begin_turn(self.orchestrator.tracer(), session, turn, model, parent)
    }

    pub(super) async fn store_turn(&self, conversation: &Conversation, record: &TurnRecord) {
        // It fails where another node has the conversation now, and that node has what is needed.
        let _ = self.store_turn_with(conversation, record, Commit::default()).await;
    }

    /// Stores a turn together with something else, both or neither. Fails when another node has the conversation, and where
    /// nodes share the store; what else goes wrong is logged.
    pub(super) async fn store_turn_with(
        &self,
        conversation: &Conversation,
        record: &TurnRecord,
        more: Commit,
    ) -> Result<(), Refusal> {
        if record.number == 0 || conversation.is_deleted() {
            return Ok(());
        }
        if record.turn.ending().is_some() {
            self.record_transcript(conversation, record);
        }
        let commit = history::put_turn(conversation.session.id(), record, self.expiry_ms()).and(more);
        match conversation.session.commit(commit).await {
            Ok(_) => {}
            Err(_) if conversation.session.is_lost() => {
                self.forget_lost(conversation);
                return Err(SessionError::Lost.into());
            }
            Err(error) if conversation.session.is_unstored() => {
                self.forget_lost(conversation);
                return Err(error.into_store_error().into());
            }
            Err(error) => {
                tracing::error!(session = conversation.session.id(), error = %error, "turn write failed");
                // The next delivery of the message may arrive at another node, which would know nothing of this one.
                if self.orchestrator.store().is_shared() {
                    return Err(error.into_store_error().into());
                }
            }
        }
        Ok(())
    }
}

/// The note about a reply that came too late, or a second time. The session has notes for every other outcome.
fn failed_reply_note(response: &ToolResponse) -> Option<String> {
    match &response.outcome {
        Outcome::Failure(error)
            if matches!(error.kind, ErrorType::ConfirmationExpired | ErrorType::ConfirmationInvalid) =>
        {
            Some(format!(
                "The user replied with an approval code. {} Nothing was approved by it.",
                error.message
            ))
        }
        _ => None,
    }
}

/// Puts notes in front of the user's text.
pub(super) fn prepend_notes(conversation: &Conversation, mut notes: Vec<String>, text: &str) -> String {
    notes.append(&mut conversation.lock().notes);
    if notes.is_empty() {
        return text.to_owned();
    }
    let notes = format_notes(&notes);
    if text.is_empty() { notes } else { format!("{notes}\n\n{text}") }
}

/// Notes about writes that an earlier attempt at this answer has done.
fn completed_write_notes(conversation: &Conversation, record: &TurnRecord) -> Vec<String> {
    let writes = |tool: &str| {
        let tool = conversation.session.snapshot().find(tool);
        tool.is_some_and(|tool| tool.metadata().side_effects == SideEffects::Writes)
    };
    let results = record.turn.messages().iter().filter_map(|message| match message {
        ChatMessage::Tools { results } => Some(results),
        _ => None,
    });
    let done = results.flatten().filter(|result| writes(&result.name));
    let done = done.filter(|result| matches!(result.response.outcome, Outcome::Success(_)));
    done.map(|result| format!("{} was done already, in an earlier attempt at this answer.", result.name))
        .collect()
}

pub(super) fn started_event(guard: &TurnGuard, message_id: &Arc<str>) -> StreamEvent {
    let session_id = guard.conversation.session.id().into();
    StreamEvent::Started { message_id: message_id.clone(), session_id }
}
