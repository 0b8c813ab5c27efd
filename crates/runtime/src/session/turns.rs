//! Turns, interruptions and cancellation.

use std::sync::Arc;

use super::answer::Answer;
use super::{Desk, Inner, Session};
use crate::call::Call;
use crate::ledger::Entry;
use crate::state::PendingEnd;

/// How many messages that began a turn are remembered, so that one that comes twice is known.
const REMEMBERED_KEYS: usize = 50;

/// A turn that was begun.
#[derive(Debug)]
pub struct TurnStart {
    /// Its number.
    pub number: u64,
    /// Whether it is a second delivery of a message that began this turn before.
    pub is_repeated: bool,
    /// Answers of calls that waited for a person who has now said something else.
    pub answers: Vec<Answer>,
    /// What happened behind the model's back, to be put in front of the turn.
    pub notes: Vec<String>,
}

impl Session {
    /// Begins a turn. `key` is the message's id or its idempotency key: a second delivery joins the turn it began.
    pub fn begin_turn(&self, key: Option<&str>) -> TurnStart {
        let inner = &self.inner;
        let mut desk = inner.lock();
        if let Some(number) = key.and_then(|key| desk.turn_of(key)) {
            return TurnStart { number, is_repeated: true, answers: Vec::new(), notes: Vec::new() };
        }
        inner.sum_up(&mut desk);
        let answers = inner.answer_suspended(&mut desk);
        let number = desk.ledger.begin_turn();
        if let Some(key) = key {
            desk.turn_keys.push_back((key.to_owned(), number));
            if desk.turn_keys.len() > REMEMBERED_KEYS {
                desk.turn_keys.pop_front();
            }
        }
        let mut notes = std::mem::take(&mut desk.notes);
        notes.extend(desk.controller.take_pending_message());
        desk.seen_ms = inner.now_ms();
        desk.facts = None;
        desk.unsaved.session = true;
        inner.save_soon(&mut desk);
        drop(desk);
        inner.shared.metrics.turn_began();
        TurnStart { number, is_repeated: false, answers, notes }
    }

    /// Whoever keeps the conversation knows that this turn has begun. A crash may have lost the session's own count,
    /// and a number is never given twice. What the turn may have used is not known, so it has no budget left.
    pub fn skip_to_turn(&self, turn: u64) {
        let mut desk = self.inner.lock();
        if turn > desk.ledger.turn_number() {
            desk.ledger.skip_to(turn);
            let budgets = *self.inner.shared.policy.budgets(self.inner.mode);
            let turn = desk.ledger.turn();
            (turn.calls, turn.retrieval) = (budgets.calls, budgets.retrieval);
            turn.has_read_foreign_text = true;
            desk.facts = None;
        }
    }

    /// What happened behind the model's back since it was last told, for one that can be told at once.
    pub fn take_notes(&self) -> Vec<String> {
        let mut desk = self.inner.lock();
        if !desk.notes.is_empty() {
            desk.unsaved.session = true;
            self.inner.save_soon(&mut desk);
        }
        std::mem::take(&mut desk.notes)
    }

    /// The provider takes back calls, by their ids.
    pub fn cancel(&self, ids: &[&str]) {
        let desk = self.inner.lock();
        for entry in desk.unfinished.iter().filter(|entry| ids.contains(&&*entry.call_id)) {
            entry.cancel();
        }
        desk.unadmitted.iter().for_each(|message| message.cancel(ids));
    }

    /// The person has barged in, or gone: what has not begun does not begin, what does not write stops, and an end
    /// that was asked for is void.
    pub fn interrupt(&self) {
        let mut desk = self.inner.lock();
        for entry in &desk.unfinished {
            entry.cancel();
        }
        desk.unadmitted.iter().for_each(|message| message.cancel_all());
        let transition = desk.controller.interrupted();
        if transition.is_some() {
            desk.facts = None;
            desk.unsaved.session = true;
            self.inner.save_soon(&mut desk);
        }
        drop(desk);
        self.inner.audit_transitions(transition.into_iter().collect());
    }

    /// The model has finished what it had to say.
    pub fn complete_turn(&self) {
        let mut desk = self.inner.lock();
        desk.controller.complete_turn();
    }

    /// Everything that was sent has been heard. The end that waited for it, if there is one: whoever asked ends the
    /// session.
    pub fn mark_heard(&self) -> Option<PendingEnd> {
        let mut desk = self.inner.lock();
        desk.ledger.heard();
        let end = desk.controller.heard();
        desk.facts = None;
        end
    }
}

impl Inner {
    /// One line at the end of a turn.
    fn sum_up(&self, desk: &mut Desk) {
        let turn = desk.ledger.turn();
        if turn.calls > 0 {
            let tool_ms = turn.tool_time.as_millis() as u64;
            tracing::info!(
                session = %self.id, turn = turn.number, calls = turn.calls, retrieval = turn.retrieval, tool_ms,
                "turn ended"
            );
            if self.shared.policy.budgets(self.mode).turn_ms.is_some_and(|limit| tool_ms > limit) {
                tracing::warn!(session = %self.id, turn = turn.number, tool_ms, "the tools of a turn were slow");
            }
        }
    }

    /// Calls that waited for a person who said something else instead. The questions stay open.
    fn answer_suspended(self: &Arc<Self>, desk: &mut Desk) -> Vec<Answer> {
        let suspended: Vec<_> = desk
            .questions
            .iter_mut()
            .filter(|question| !question.is_claimed)
            .filter_map(|question| Some((question.suspended.take()?, question.request.clone())))
            .collect();
        suspended
            .into_iter()
            .map(|(entry, request)| {
                let response = self.confirmation_required(&entry.tool, request.as_ref());
                self.remember_unasked(desk, &entry, &response);
                self.finish_unrun(desk, &entry, response.clone())
            })
            .collect()
    }

    /// Answers a call that never ran.
    pub(super) fn finish_unrun(
        self: &Arc<Self>,
        desk: &mut Desk,
        entry: &Arc<Entry>,
        response: Arc<quarterdeck_contracts::ToolResponse>,
    ) -> Answer {
        entry.answer(response.clone());
        desk.unfinished.retain(|other| !Arc::ptr_eq(other, entry));
        Answer::to_asked(self, entry, response)
    }

    /// A call that a person is asked about is known to the ledger, so that the same one again waits with it.
    pub(super) fn suspend(&self, desk: &mut Desk, entry: &Arc<Entry>) -> Arc<Entry> {
        desk.ledger.enter(entry.clone());
        entry.clone()
    }

    /// A nested call, made by a handler.
    pub(super) async fn admit_nested(
        &self,
        name: &str,
        args: serde_json::Value,
        ancestors: Vec<super::admit::Ancestor>,
    ) -> super::admit::Planned {
        let call = Call::new(name, args);
        let judged = self.judge_beforehand(&call).await;
        self.admit(&mut self.lock(), call, judged.as_ref(), ancestors)
    }
}

impl Desk {
    fn turn_of(&self, key: &str) -> Option<u64> {
        self.turn_keys.iter().find(|(known, _)| known == key).map(|(_, number)| *number)
    }
}
