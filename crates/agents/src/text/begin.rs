//! How a turn begins, goes on, or turns out to be running already.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{ChatMessage, ErrorType, Outcome, SideEffects, ToolResponse};
use quarterdeck_runtime::{ConfirmationMode, TurnStart, random_hex};

use super::codes::CodeMatch;
use super::conversation::{Conversation, Running, Seat};
use super::drive::Drive;
use super::event::StreamEvent;
use super::history::{self, TurnRecord};
use super::live::{Live, Reader};
use super::prepared::Prepared;
use super::{Address, Inner, Message, Refusal, TextAgent, Transcript, User};
use crate::note::as_note;
use crate::turn::{Ending, Turn};

/// How long a new message waits for a turn that somebody still seems to follow.
const PATIENCE_WITH_READERS: Duration = Duration::from_millis(500);
/// How long it waits for one that nobody follows any more.
const PATIENCE_WITHOUT: Duration = Duration::from_secs(2);

/// What the model is told of a code that answers no question here.
const UNKNOWN_CODE: &str = "The user replied with an approval code that answers no open question of this conversation. \
                            Nothing was approved or denied by it.";

impl TextAgent {
    /// A person says something. The reader follows the answer; dropping the last one aborts it.
    pub async fn send_message(
        &self,
        visitor: &User,
        to: Address<'_>,
        message: Message,
    ) -> Result<Reader, Refusal> {
        let agent = &self.inner;
        let conversation = agent.reach(visitor, to).await?;
        let Message { id, idempotency_key, text } = message;
        let key = idempotency_key.as_deref().or(id.as_deref());
        let seat = match agent.take_seat(&conversation, key).await {
            Ok(seat) => seat,
            // A second delivery of the same message joins; another message has to wait.
            Err(running) if key.is_some() && running.key.as_deref() == key => {
                return Ok(running.live.follow());
            }
            Err(_) => return Err(Refusal::Busy),
        };
        // The history knows every message, also those that another process has answered.
        let session_id = conversation.session.id().into();
        if let Some(told) = key.and_then(|key| conversation.lock().retell(key, &session_id)) {
            let id = conversation.session.id().to_owned();
            drop((seat, conversation));
            agent.rest(&id);
            return Ok(Live::over(told, agent.memory.of_answer()).follow());
        }
        let prepared = Prepared::new(agent, &conversation, &visitor.situation, None);
        let TurnStart { number, answers, notes, .. } = conversation.session.begin_turn(key);
        agent.close_suspended(&conversation, answers).await;
        let with_notes = with_notes(&conversation, notes, &text);
        let key = key.map(str::to_owned);
        let record = TurnRecord { key, ..agent.new_record(number, id, text, with_notes)? };
        // Before anything is done about it, so that a second delivery after a crash is known to be one.
        agent.keep(&conversation, &record).await;
        Ok(agent.go(seat, record, prepared, ConfirmationMode::Suspend))
    }

    /// Answers the last message anew. What was done stays done.
    pub async fn regenerate(&self, visitor: &User, to: Address<'_>) -> Result<Reader, Refusal> {
        let agent = &self.inner;
        let conversation = agent.find(visitor, to).await?.ok_or(Refusal::NothingToRegenerate)?;
        let seat = agent.take_seat(&conversation, None).await.map_err(|_| Refusal::Busy)?;
        if conversation.lock().turns.last().is_none_or(|record| record.said.is_empty()) {
            return Err(Refusal::NothingToRegenerate);
        }
        let TurnStart { number, answers, mut notes, .. } = conversation.session.begin_turn(None);
        agent.close_suspended(&conversation, answers).await;
        let replaced = {
            let mut talk = conversation.lock();
            let Some(last) = talk.turns.last_mut() else { return Err(Refusal::NothingToRegenerate) };
            last.is_replaced = true;
            last.clone()
        };
        agent.keep(&conversation, &replaced).await;
        notes.extend(already_done(&conversation, &replaced));
        let prepared = Prepared::new(agent, &conversation, &visitor.situation, None);
        let text = with_notes(&conversation, notes, &replaced.said);
        let record = agent.new_record(number, replaced.person_id, replaced.said, text)?;
        Ok(agent.go(seat, record, prepared, ConfirmationMode::Suspend))
    }

    /// A conversation in the client's own telling. Questions to the person are answered first and decided later.
    pub async fn complete(
        &self,
        visitor: &User,
        to: Address<'_>,
        transcript: Transcript,
    ) -> Result<Reader, Refusal> {
        let agent = &self.inner;
        let Transcript { before, text, fingerprint, is_retry } = transcript;
        let decides = agent.decided_in(&visitor.client.id, &before, &text);
        let is_decision = matches!(decides, CodeMatch::Question(_));
        let mut conversation = match &decides {
            // Also whoever decides must be somebody who may still talk to us.
            CodeMatch::Question(of) => agent.reach(visitor, Address::Session(of.session.id())).await?,
            CodeMatch::NotACode | CodeMatch::Unknown => agent.reach(visitor, to).await?,
        };
        let seat = match conversation.sit_down(Some(&fingerprint), &agent.memory) {
            Ok(seat) => seat,
            Err(running) if is_retry && running.key.as_deref() == Some(&fingerprint) => {
                return Ok(running.live.follow());
            }
            // The question waits here, so its answer has to wait for its turn.
            Err(_) if is_decision => {
                agent.take_seat(&conversation, Some(&fingerprint)).await.map_err(|_| Refusal::Busy)?
            }
            // The client tells everything itself, so another conversation that began the same way is held apart.
            Err(_) => {
                conversation = agent.reach(visitor, Address::New).await?;
                conversation.sit_down(Some(&fingerprint), &agent.memory).map_err(|_| Refusal::Busy)?
            }
        };
        if let Some(decision) = conversation.decision_in(&before, &text) {
            // The person's word counts, not the model's: it is carried out here, and the model is told.
            let decided = agent.carry_out(&conversation.session, None, &decision).await;
            conversation.lock().questions.retain(|question| !question.is_answered_by(&decision));
            if let Some(note) = came_to_nothing(&decided.response) {
                conversation.lock().notes.push(note);
            }
        } else if matches!(decides, CodeMatch::Unknown | CodeMatch::Question(_)) {
            conversation.lock().notes.push(UNKNOWN_CODE.into());
        }
        // Clients send a request again when its answer was lost on the way, and by then tools may have run.
        let earlier = conversation
            .lock()
            .last_transcribed
            .clone()
            .filter(|record| is_retry && record.is_of(&fingerprint));
        if earlier.as_ref().is_some_and(|record| record.turn.ending() == Some(&Ending::Answered))
            && let Some(told) = conversation.lock().retell(&fingerprint, &conversation.session.id().into())
        {
            return Ok(Live::over(told, agent.memory.of_answer()).follow());
        }
        let prepared = Prepared::new(agent, &conversation, &visitor.situation, Some(before));
        let TurnStart { number, mut notes, .. } = conversation.session.begin_turn(None);
        notes.extend(earlier.iter().flat_map(|record| already_done(&conversation, record)));
        let with_notes = with_notes(&conversation, notes, &text);
        let key = Some(fingerprint);
        let record = TurnRecord { key, ..agent.new_record(number, None, text, with_notes)? };
        Ok(agent.go(seat, record, prepared, ConfirmationMode::AnswerFirst))
    }

    /// The turn that runs in a conversation, from its start.
    pub async fn follow(&self, visitor: &User, to: Address<'_>) -> Result<Option<Reader>, Refusal> {
        let Some(conversation) = self.inner.find(visitor, to).await? else { return Ok(None) };
        let running = conversation.lock().running.clone();
        Ok(running.filter(|running| !running.live.is_over()).map(|running| running.live.follow()))
    }
}

impl Inner {
    /// Takes the place of the running turn. While another one has it, that one is given back instead.
    pub(super) async fn take_seat(
        &self,
        conversation: &Arc<Conversation>,
        key: Option<&str>,
    ) -> Result<Seat, Running> {
        let mut patience = PATIENCE_WITH_READERS;
        loop {
            let running = match conversation.sit_down(key, &self.memory) {
                Ok(seat) => return Ok(seat),
                Err(running) => running,
            };
            let is_same = key.is_some() && running.key.as_deref() == key;
            if is_same || (patience.is_zero() && !running.live.is_deserted()) {
                return Err(running);
            }
            // It takes a moment until a page that was closed is known to be gone, and another to end its turn.
            let waited = if patience.is_zero() { PATIENCE_WITHOUT } else { patience };
            patience = Duration::ZERO;
            if tokio::time::timeout(waited, running.live.ended()).await.is_err() && waited == PATIENCE_WITHOUT
            {
                return Err(running);
            }
        }
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

    /// Starts a turn that was just begun.
    fn go(
        self: &Arc<Self>,
        seat: Seat,
        record: TurnRecord,
        prepared: Prepared,
        asking: ConfirmationMode,
    ) -> Reader {
        let reader = seat.live.follow();
        let session = &seat.conversation.session;
        if record.number == 1 {
            let (system_tokens, tool_tokens) = prepared.tokens();
            tracing::info!(session = session.id(), system_tokens, tool_tokens, "session started");
        }
        let _ = seat.live.push(started(&seat, &record.message_id));
        {
            let mut talk = seat.conversation.lock();
            if prepared.left_out > talk.told_left_out {
                talk.told_left_out = prepared.left_out;
                let value = serde_json::json!({ "turns": prepared.left_out });
                let _ = seat.live.push(StreamEvent::Data { name: "history-trimmed".into(), value });
            }
            if prepared.transcript.is_none() {
                talk.keep(record.clone());
            }
        }
        let connection = session.connect_with(asking);
        tokio::spawn(Drive::new(self.clone(), seat, connection, record, prepared).run());
        reader
    }

    /// Writes a turn down.
    pub(super) async fn keep(&self, conversation: &Conversation, record: &TurnRecord) {
        if record.number == 0 {
            return;
        }
        let commit = history::keep(conversation.session.id(), record, self.expiry_ms());
        if let Err(error) = self.orchestrator.store().commit(commit).await {
            tracing::error!(session = conversation.session.id(), error = %error, "a turn was not stored");
        }
    }
}

/// What the model is told when a person's word came too late, or a second time. Every other outcome has a note already.
fn came_to_nothing(response: &ToolResponse) -> Option<String> {
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

/// What the person said, with what the model must know first.
pub(super) fn with_notes(conversation: &Conversation, mut notes: Vec<String>, text: &str) -> String {
    notes.append(&mut conversation.lock().notes);
    if notes.is_empty() {
        return text.to_owned();
    }
    let notes = as_note(&notes);
    if text.is_empty() { notes } else { format!("{notes}\n\n{text}") }
}

/// What an answer that is made anew has done already.
fn already_done(conversation: &Conversation, record: &TurnRecord) -> Vec<String> {
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

/// The first thing that a reader is told.
pub(super) fn started(seat: &Seat, message_id: &Arc<str>) -> StreamEvent {
    let session_id = seat.conversation.session.id().into();
    StreamEvent::Started { message_id: message_id.clone(), session_id }
}
