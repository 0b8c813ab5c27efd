//! Answers of tool calls on their way out. One that is dropped undelivered goes back to its session.

use std::collections::HashMap;
use std::sync::Arc;

use quarterdeck_contracts::ToolResponse;
use quarterdeck_runtime::gates::Trace;
use quarterdeck_runtime::{Answer, DeliveryReceipt};

/// How many writes are remembered that a model may forget. No turn has so many.
const MAX_RECEIPTS: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct AnswerId(pub(super) u64);

/// What the machine knows of an answer that [`Answers`] holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReceivedAnswer {
    pub(super) id: AnswerId,
    pub(super) call_id: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) response: Arc<ToolResponse>,
    pub(super) trace: Option<Trace>,
    /// Whether the model still wants to know.
    pub(super) is_wanted: bool,
}

#[derive(Default)]
pub(super) struct Answers {
    last: u64,
    held: HashMap<AnswerId, Answer>,
    /// Writes that the model was told of and would forget if it were resumed from its last handle.
    receipts: Vec<DeliveryReceipt>,
}

impl Answers {
    pub(super) fn hold(&mut self, answer: Answer) -> ReceivedAnswer {
        self.last += 1;
        let id = AnswerId(self.last);
        let received = ReceivedAnswer {
            id,
            call_id: answer.call_id.clone(),
            name: answer.name.clone(),
            response: answer.response.clone(),
            trace: answer.trace.clone(),
            is_wanted: answer.is_wanted,
        };
        self.held.insert(id, answer);
        received
    }

    pub(super) fn deliver(&mut self, id: AnswerId) {
        if let Some(answer) = self.held.remove(&id) {
            answer.mark_delivered();
        }
    }

    /// Delivers answers to a model that may forget them.
    pub(super) fn deliver_to_model(&mut self, ids: impl Iterator<Item = AnswerId>) {
        let receipts = ids.filter_map(|id| self.held.remove(&id)).map(Answer::into_receipt);
        self.receipts.extend(receipts.filter(DeliveryReceipt::is_write));
        let excess = self.receipts.len().saturating_sub(MAX_RECEIPTS);
        self.receipts.drain(..excess);
    }

    /// Gives an answer back to the session.
    pub(super) fn give_back(&mut self, id: AnswerId) {
        self.held.remove(&id);
    }

    pub(super) fn settle_receipts(&mut self) {
        self.receipts.clear();
    }

    pub(super) fn forget_receipts(&mut self) {
        self.receipts.drain(..).for_each(DeliveryReceipt::forget);
    }
}
