//! Turns, interruptions and cancellation.

use std::sync::Arc;

use super::answer::Answer;
use super::{Session, SessionCore, SessionData};
use crate::call::Call;
use crate::ledger::Entry;
use crate::state::PendingEnd;

/// How many messages that began a turn are remembered, so that one that comes twice is known.
const MAX_TURN_KEYS: usize = 50;

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
        let core = &self.core;
        let mut data = core.lock();
        if let Some(number) = key.and_then(|key| data.turn_of(key)) {
            return TurnStart { number, is_repeated: true, answers: Vec::new(), notes: Vec::new() };
        }
        core.log_turn(&mut data);
        let answers = core.answer_suspended(&mut data);
        let number = data.ledger.begin_turn();
        if let Some(key) = key {
            data.turn_keys.push_back((key.to_owned(), number));
            if data.turn_keys.len() > MAX_TURN_KEYS {
                data.turn_keys.pop_front();
            }
        }
        let mut notes = std::mem::take(&mut data.notes);
        notes.extend(data.controller.take_pending_message());
        data.seen_ms = core.now_ms();
        data.facts = None;
        data.unsaved.session = true;
        core.save_soon(&mut data);
        drop(data);
        core.shared.metrics.turn_started();
        TurnStart { number, is_repeated: false, answers, notes }
    }

    /// Whoever keeps the conversation knows that this turn has begun. A crash may have lost the session's own count,
    /// and a number is never given twice. What the turn may have used is not known, so it has no budget left.
    pub fn skip_to_turn(&self, turn: u64) {
        let mut data = self.core.lock();
        if turn > data.ledger.turn_number() {
            data.ledger.skip_to(turn);
            let budgets = *self.core.shared.policy.budgets(self.core.mode);
            let turn = data.ledger.turn();
            (turn.calls, turn.retrieval) = (budgets.calls, budgets.retrieval);
            turn.has_read_foreign_text = true;
            data.facts = None;
        }
    }

    /// What happened behind the model's back since it was last told, for one that can be told at once.
    pub fn take_notes(&self) -> Vec<String> {
        let mut data = self.core.lock();
        if !data.notes.is_empty() {
            data.unsaved.session = true;
            self.core.save_soon(&mut data);
        }
        std::mem::take(&mut data.notes)
    }

    /// The provider takes back calls, by their ids.
    pub fn cancel(&self, ids: &[&str]) {
        let data = self.core.lock();
        for entry in data.unfinished.iter().filter(|entry| ids.contains(&&*entry.call_id)) {
            entry.cancel();
        }
        data.unadmitted.iter().for_each(|message| message.cancel(ids));
    }

    /// The person has barged in, or gone: what has not begun does not begin, what does not write stops, and an end
    /// that was asked for is void.
    pub fn interrupt(&self) {
        let mut data = self.core.lock();
        for entry in &data.unfinished {
            entry.cancel();
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

    /// The model has finished what it had to say.
    pub fn complete_turn(&self) {
        let mut data = self.core.lock();
        data.controller.complete_turn();
    }

    /// Everything that was sent has been heard. The end that waited for it, if there is one: whoever asked ends the
    /// session.
    pub fn mark_heard(&self) -> Option<PendingEnd> {
        let mut data = self.core.lock();
        data.ledger.mark_heard();
        let end = data.controller.mark_heard();
        data.facts = None;
        end
    }
}

impl SessionCore {
    /// One line at the end of a turn.
    fn log_turn(&self, data: &mut SessionData) {
        let turn = data.ledger.turn();
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
    fn answer_suspended(self: &Arc<Self>, data: &mut SessionData) -> Vec<Answer> {
        let suspended: Vec<_> = data
            .confirmations
            .iter_mut()
            .filter(|confirmation| !confirmation.is_claimed)
            .filter_map(|confirmation| Some((confirmation.suspended.take()?, confirmation.request.clone())))
            .collect();
        suspended
            .into_iter()
            .map(|(entry, request)| {
                let response = self.confirmation_required(&entry.tool, request.as_ref());
                self.replace_with_refusal(data, &entry, &response);
                self.answer_unexecuted(data, &entry, response.clone())
            })
            .collect()
    }

    /// Answers a call that never ran.
    pub(super) fn answer_unexecuted(
        self: &Arc<Self>,
        data: &mut SessionData,
        entry: &Arc<Entry>,
        response: Arc<quarterdeck_contracts::ToolResponse>,
    ) -> Answer {
        entry.set_answer(response.clone());
        data.unfinished.retain(|other| !Arc::ptr_eq(other, entry));
        Answer::to_suspended(self, entry, response)
    }

    /// A call that a person is asked about is known to the ledger, so that the same one again waits with it.
    pub(super) fn suspend(&self, data: &mut SessionData, entry: &Arc<Entry>) -> Arc<Entry> {
        data.ledger.insert(entry.clone());
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
        let judged = self.precheck(&call).await;
        self.admit(&mut self.lock(), call, judged.as_ref(), ancestors)
    }
}

impl SessionData {
    fn turn_of(&self, key: &str) -> Option<u64> {
        self.turn_keys.iter().find(|(known, _)| known == key).map(|(_, number)| *number)
    }
}
