//! Turns, interruptions and cancellation.

use std::sync::Arc;

use quarterdeck_contracts::handler::CancelReason;
use quarterdeck_contracts::{Commit, ToolResponse};

use super::answer::Answer;
use super::{PendingConfirmation, Session, SessionCore, SessionData};
use crate::envelope::confirmation_required;
use crate::ledger::{Entry, Phase};
use crate::state::PendingEnd;

/// How many messages that began a turn are remembered, so that a second delivery is recognised.
const MAX_TURN_KEYS: usize = 50;

#[derive(Debug)]
pub struct TurnStart {
    pub number: u64,
    /// Whether it is a second delivery of a message that began this turn before.
    pub is_repeated: bool,
    /// Answers of calls that waited for the user's approval when the user wrote something else.
    pub answers: Vec<Answer>,
    /// What happened since the model's last turn without its seeing it, to be put in front of this one.
    pub notes: Vec<String>,
    /// Marks ended tasks as told to the model. It is stored together with what the model is told of them, so that a
    /// crash leaves both or neither.
    pub told: Commit,
}

impl Session {
    /// Begins a turn. `key` is the message's id or its idempotency key: a second delivery joins the turn it began.
    pub fn begin_turn(&self, key: Option<&str>) -> TurnStart {
        let core = &self.core;
        let mut data = core.lock();
        if let Some(number) = key.and_then(|key| data.find_turn(key)) {
            return TurnStart {
                number,
                is_repeated: true,
                answers: Vec::new(),
                notes: Vec::new(),
                told: Commit::default(),
            };
        }
        core.sum_up_turn(&mut data);
        core.keep_for_turn();
        let answers = core.answer_all_suspended(&mut data);
        let number = data.ledger.begin_turn();
        if let Some(key) = key {
            data.turn_keys.push_back((key.to_owned(), number));
            if data.turn_keys.len() > MAX_TURN_KEYS {
                data.turn_keys.pop_front();
            }
        }
        let mut notes = std::mem::take(&mut data.notes.texts);
        let (of_tasks, told) = core.take_task_outcomes(&mut data);
        notes.extend(of_tasks);
        notes.extend(data.controller.take_pending_message());
        notes.extend(data.ledger.slow_calls().take_note());
        data.seen_ms = core.now_ms();
        data.facts = None;
        data.unsaved.session = true;
        core.save_soon(&mut data);
        drop(data);
        core.shared.metrics.turn_started();
        TurnStart { number, is_repeated: false, answers, notes, told }
    }

    /// Adds what the user has typed, or what stands in the transcript of what they said, to the words of this turn. A tool
    /// may run unasked because of them, so they are never a model's or a tool's. They are joined as they come: a message
    /// of its own ends with a line break.
    pub fn add_user_words(&self, words: &str) {
        self.core.lock().ledger.turn().add_user_words(words);
    }

    /// The conversation's own store knows that this turn has begun. A crash may have lost the session's count, and a
    /// number is never given twice. What the turn may have used is not known, so it has no budget left.
    pub fn skip_to_turn(&self, turn: u64) {
        let mut data = self.core.lock();
        if turn > data.ledger.turn_number() {
            data.ledger.skip_to(turn);
            data.ledger.turn().exhaust(self.core.shared.policy.budgets(self.core.mode));
            data.facts = None;
        }
    }

    /// What a call has come to that ran, by the id under which it came; nothing while it runs or waits for the user.
    pub fn answer_of(&self, call_id: &str) -> Option<Arc<ToolResponse>> {
        self.core.lock().ledger.answer_of(call_id)
    }

    /// Whether the user's decision about a call has been taken, and is being carried out.
    pub fn is_being_decided(&self, call_id: &str) -> bool {
        let data = self.core.lock();
        let is_claimed = |pending: &PendingConfirmation| *pending.call_id == *call_id && pending.is_claimed;
        let is_running = |entry: &Arc<Entry>| *entry.call_id == *call_id && entry.phase() > Phase::Admitted;
        data.confirmations.iter().any(is_claimed) || data.unfinished.iter().any(is_running)
    }

    /// Adds what the model is to be told at the beginning of the next turn.
    pub fn add_notes(&self, mut notes: Vec<String>) {
        if notes.is_empty() {
            return;
        }
        let mut data = self.core.lock();
        data.notes.texts.append(&mut notes);
        data.unsaved.session = true;
        self.core.save_soon(&mut data);
    }

    /// What happened without the model's seeing it, for one that can be told at once.
    pub fn take_notes(&self) -> Vec<String> {
        let mut data = self.core.lock();
        if !data.notes.texts.is_empty() {
            data.unsaved.session = true;
            self.core.save_soon(&mut data);
        }
        let mut notes = std::mem::take(&mut data.notes.texts);
        let (of_tasks, told) = self.core.take_task_outcomes(&mut data);
        drop(data);
        notes.extend(of_tasks);
        self.store_soon(told);
        notes
    }

    /// Hands a commit of this session to the store without waiting for it.
    pub fn store_soon(&self, commit: Commit) {
        if !commit.is_empty()
            && let Err(error) = self.core.queue(commit)
        {
            tracing::warn!(session = %self.core.id, error = %error, "store write deferred");
        }
    }

    /// The provider takes back calls, by their ids.
    pub fn cancel(&self, ids: &[&str]) {
        let data = self.core.lock();
        for entry in data.unfinished.iter().filter(|entry| ids.contains(&&*entry.call_id)) {
            entry.cancel(CancelReason::Stopped);
        }
        data.unadmitted.iter().for_each(|message| message.cancel(ids));
    }

    /// The user has interrupted, or gone: what has not started does not start, what does not write stops, and a pending
    /// end is void.
    pub fn interrupt(&self) {
        let mut data = self.core.lock();
        for entry in &data.unfinished {
            entry.cancel(CancelReason::Stopped);
        }
        data.unadmitted.iter().for_each(|message| message.cancel_all());
        let transition = data.controller.interrupt();
        if transition.is_some() {
            data.facts = None;
            data.unsaved.session = true;
            self.core.save_soon(&mut data);
        }
        drop(data);
        self.core.audit_transitions(transition.into_iter().collect());
    }

    pub fn complete_turn(&self) {
        let mut data = self.core.lock();
        self.core.sum_up_turn(&mut data);
        data.controller.complete_turn();
    }

    /// Everything that was sent has been heard. The end that waited for it, if there is one; the caller ends the session.
    pub fn mark_heard(&self) -> Option<PendingEnd> {
        let mut data = self.core.lock();
        data.ledger.mark_heard();
        let end = data.controller.mark_heard();
        data.facts = None;
        end
    }
}

impl SessionCore {
    /// Logs what a turn has used: when it is complete, or at the latest when the next one begins or the session ends. A
    /// turn in which there was more to do after that is summed up again.
    pub(super) fn sum_up_turn(&self, data: &mut SessionData) {
        let turn = data.ledger.turn();
        if turn.calls == turn.summed_up_calls {
            return;
        }
        turn.summed_up_calls = turn.calls;
        let tool_ms = turn.tool_time.as_millis() as u64;
        tracing::info!(
            session = %self.id, turn = turn.number, calls = turn.calls, retrieval = turn.retrieval, tool_ms,
            "turn ended"
        );
        if self.shared.policy.budgets(self.mode).turn_ms.is_some_and(|limit| tool_ms > limit) {
            tracing::warn!(session = %self.id, turn = turn.number, tool_ms, "tools of a turn were slow");
        }
    }

    /// Answers calls that waited for the user, who wrote something else instead. Their confirmations stay open.
    fn answer_all_suspended(self: &Arc<Self>, data: &mut SessionData) -> Vec<Answer> {
        let suspended: Vec<_> = data
            .confirmations
            .iter_mut()
            .filter(|confirmation| !confirmation.is_claimed)
            .filter_map(|confirmation| Some((confirmation.suspended.take()?, confirmation.request.clone())))
            .collect();
        let answer = |(entry, request): (Arc<crate::ledger::Entry>, Option<_>)| {
            let error = confirmation_required(&entry.tool, request.as_ref());
            let response = self.refusal(&entry.tool, error);
            self.answer_suspended(data, &entry, response)
        };
        suspended.into_iter().map(answer).collect()
    }
}

impl SessionData {
    fn find_turn(&self, key: &str) -> Option<u64> {
        self.turn_keys.iter().find(|(known, _)| known == key).map(|(_, number)| *number)
    }
}
