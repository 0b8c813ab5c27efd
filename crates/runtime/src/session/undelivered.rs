//! Answers that no client has received yet. They go to the present connection, or to the next one.

use std::sync::Arc;

use quarterdeck_contracts::{ErrorType, Outcome, ToolResponse};

use super::answer::{Answer, AnswerOwner, AnswerSource, PendingAnswer, is_cancelled};
use super::events::{ClientEvent, DeliveryReason};
use super::{SessionCore, SessionData};
use crate::ledger::{Entry, Phase};
use crate::registry::LoadedTool;

/// How many undelivered answers of calls that did not write are kept for the next connection.
const MAX_UNDELIVERED: usize = 64;

impl AnswerOwner for SessionCore {
    fn keep_undelivered(self: Arc<Self>, pending: PendingAnswer) {
        if matches!(pending.source, AnswerSource::Replay(_)) || is_answered_by_decision(&pending) {
            return;
        }
        let mut data = self.lock();
        if let Some(entry) = pending.own_entry() {
            let is_known = data.undelivered.iter().any(|other| other.is_of(entry));
            // A cancelled call is not waited for, or was reported as abandoned; one that was delivered under another id
            // is known.
            let is_unwanted =
                entry.answer().is_some_and(|response| entry.is_cancelled() || is_cancelled(&response));
            if is_known || entry.phase() >= Phase::Delivered || is_unwanted {
                return;
            }
        }
        data.undelivered.push(pending);
        let mut surplus = data.undelivered.len().saturating_sub(MAX_UNDELIVERED);
        if surplus > 0 {
            data.undelivered.retain(|pending| {
                let is_write = pending.own_entry().is_some_and(|entry| entry.writes);
                let is_dropped = surplus > 0 && !is_write;
                surplus -= usize::from(is_dropped);
                !is_dropped
            });
        }
        self.hand_over(&mut data);
    }

    fn mark_delivered(self: Arc<Self>, entry: &Arc<Entry>) {
        let mut data = self.lock();
        data.ledger.mark_delivered(entry);
        if entry.answer().is_some_and(|response| self.holds_foreign_text(&entry.tool, &response)) {
            data.ledger.turn().has_read_foreign_text = true;
        }
        data.undelivered.retain(|pending| !pending.is_of(entry));
        // A request for approval or a failure that may pass is no outcome: recorded, it would stand in the way of the
        // real one.
        if entry.writes && entry.is_final() {
            data.unsaved.add(entry, self.shared.policy.max_remembered_calls);
            self.save_soon(&mut data);
        }
    }

    fn mark_forgotten(&self, entry: &Arc<Entry>) {
        self.lock().ledger.mark_forgotten(entry);
    }
}

impl SessionCore {
    /// Gives undelivered answers to the present connection, once they are there.
    pub(crate) fn hand_over(self: &Arc<Self>, data: &mut SessionData) {
        if data.connection.current.is_none() {
            return;
        }
        for pending in std::mem::take(&mut data.undelivered) {
            if is_answered_by_decision(&pending) {
                continue;
            }
            let Some(response) = pending.response() else {
                data.undelivered.push(pending);
                continue;
            };
            if self.holds_foreign_text(&pending.name, &response) {
                data.ledger.announce_foreign_text();
            }
            let trace = pending.own_entry().and_then(|entry| entry.trace());
            let answer = Answer::new(self, pending, response, trace, true);
            data.events.push_back(ClientEvent::Answer { reason: DeliveryReason::Late, answer });
        }
        self.event_queued.notify_waiters();
    }

    /// Answers a suspended call that never ran.
    pub(crate) fn answer_suspended(
        self: &Arc<Self>,
        data: &mut SessionData,
        entry: &Arc<Entry>,
        response: Arc<ToolResponse>,
    ) -> Answer {
        data.replace_with_refusal(entry, &response);
        entry.set_answer(response.clone());
        data.unfinished.retain(|other| !Arc::ptr_eq(other, entry));
        Answer::to_suspended(self, entry, response)
    }

    /// Whether an answer may hold text that neither the user nor this server wrote. What no handler has answered does not.
    pub(crate) fn holds_foreign_text(&self, tool: &str, response: &ToolResponse) -> bool {
        let is_executed = match &response.outcome {
            Outcome::Success(_) => true,
            Outcome::Failure(error) => !matches!(
                error.kind,
                ErrorType::ConfirmationRequired
                    | ErrorType::ConfirmationDenied
                    | ErrorType::ConfirmationExpired
                    | ErrorType::ConfirmationInvalid
                    | ErrorType::Cancelled
            ),
        };
        is_executed && self.snapshot.find(tool).is_some_and(LoadedTool::reads_foreign_text)
    }
}

/// Whether the user's decision will bring the answer, and not the message that made the call.
fn is_answered_by_decision(pending: &PendingAnswer) -> bool {
    matches!(&pending.source, AnswerSource::Call(entry) if entry.has_confirmation())
}
