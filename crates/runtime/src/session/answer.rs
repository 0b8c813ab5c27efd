//! Answers, and the promise that each reaches someone.

use std::sync::{Arc, Weak};

use quarterdeck_contracts::{ConfirmationRequest, ErrorType, Outcome, ToolResponse};

use super::SessionCore;
use super::events::{ClientEvent, DeliveryReason};
use crate::gates::{Trace, reads_foreign_text};
use crate::ledger::Entry;

/// How many undelivered answers of calls that did not write are kept for the next connection.
const MAX_UNDELIVERED: usize = 64;

/// What came of one delivered call.
#[derive(Debug)]
pub enum Reply {
    /// Its answer.
    Answer(Answer),
    /// It waits for a person, who has been asked. The request holds no token.
    AwaitingConfirmation {
        /// The call that waits.
        call_id: Arc<str>,
        /// Its tool.
        name: Arc<str>,
        /// What the person is asked.
        request: Arc<ConfirmationRequest>,
    },
}

impl Reply {
    /// The answer, if there is one yet.
    pub fn into_answer(self) -> Option<Answer> {
        match self {
            Self::Answer(answer) => Some(answer),
            Self::AwaitingConfirmation { .. } => None,
        }
    }
}

/// One call's answer on its way out.
///
/// Whoever sends it says so with [`Answer::delivered`]. One that is dropped before that is handed to the session's next
/// connection.
#[derive(Debug)]
pub struct Answer {
    /// The id under which the call came, or ours when it had none.
    pub call_id: Arc<str>,
    /// The tool that was called.
    pub name: Arc<str>,
    /// The envelope. It holds no token, so any of it may be shown to a model.
    pub response: Arc<ToolResponse>,
    /// What the gates said about the call; `None` when none was asked, or nobody remembers.
    pub trace: Option<Trace>,
    /// Whether whoever asked still wants to know. A model that has cancelled a call must not be answered.
    pub is_wanted: bool,
    pub(super) guard: DeliveryGuard,
}

impl Answer {
    /// The answer of a call that a person was asked about. Until it is delivered, somebody is owed it.
    pub(super) fn to_suspended(
        core: &Arc<SessionCore>,
        entry: &Arc<Entry>,
        response: Arc<ToolResponse>,
    ) -> Self {
        let pending = PendingAnswer {
            call_id: entry.call_id.clone(),
            name: entry.tool.clone(),
            what: AnswerSource::Asked(entry.clone()),
        };
        let guard = DeliveryGuard::new(core, pending);
        let trace = entry.trace();
        Self { guard, trace, ..Self::without_receipt(entry.call_id.clone(), entry.tool.clone(), response) }
    }

    /// An answer that is lost without harm.
    pub(super) fn without_receipt(call_id: Arc<str>, name: Arc<str>, response: Arc<ToolResponse>) -> Self {
        Self { call_id, name, response, trace: None, is_wanted: true, guard: DeliveryGuard { open: None } }
    }

    /// The answer has been sent.
    pub fn mark_delivered(self) {
        drop(self.into_receipt());
    }

    /// The answer has been sent to somebody who may forget it.
    pub fn into_receipt(mut self) -> DeliveryReceipt {
        DeliveryReceipt { of: self.guard.give() }
    }
}

/// An answer that has been sent.
#[derive(Debug)]
#[must_use = "it is only good for being forgotten"]
pub struct DeliveryReceipt {
    of: Option<(Weak<SessionCore>, Arc<Entry>)>,
}

impl DeliveryReceipt {
    /// Whether anything was done that must not be done again.
    pub fn is_write(&self) -> bool {
        self.of.as_ref().is_some_and(|(_, entry)| entry.writes)
    }

    /// Whoever received it has gone back to a time before it, as a model does that is resumed from an older handle. A
    /// write that is then asked for again is not done again, but answered from the record.
    pub fn forget(self) {
        if let Some((core, entry)) = self.of
            && let Some(core) = core.upgrade()
        {
            core.lock().ledger.mark_forgotten(&entry);
        }
    }
}

/// Brings an answer back that was not delivered.
pub(super) struct DeliveryGuard {
    /// A guard does not keep its session alive.
    open: Option<(Weak<SessionCore>, PendingAnswer)>,
}

impl std::fmt::Debug for DeliveryGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.open.is_some() { "DeliveryGuard(open)" } else { "DeliveryGuard(given)" })
    }
}

/// An answer that nobody has received.
#[derive(Clone)]
pub(crate) struct PendingAnswer {
    pub(crate) call_id: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) what: AnswerSource,
}

/// Where an undelivered answer comes from.
#[derive(Clone)]
pub(crate) enum AnswerSource {
    /// A call in the ledger, perhaps still running.
    Call(Arc<Entry>),
    /// A call that a person was asked about: where their word arrives, it is answered.
    Asked(Arc<Entry>),
    /// The same call delivered again. Its answer is the first delivery's, which is not lost.
    Replay(Arc<Entry>),
    /// A refusal.
    Refusal(Arc<ToolResponse>),
}

impl DeliveryGuard {
    pub(super) fn new(core: &Arc<SessionCore>, pending: PendingAnswer) -> Self {
        Self { open: Some((Arc::downgrade(core), pending)) }
    }

    /// Whose answer was given, if it was a call's.
    fn give(&mut self) -> Option<(Weak<SessionCore>, Arc<Entry>)> {
        let (weak, pending) = self.open.take()?;
        let (AnswerSource::Call(entry) | AnswerSource::Asked(entry) | AnswerSource::Replay(entry)) =
            pending.what
        else {
            return None;
        };
        weak.upgrade()?.mark_delivered(&entry);
        Some((weak, entry))
    }
}

impl Drop for DeliveryGuard {
    fn drop(&mut self) {
        if let Some((core, pending)) = self.open.take()
            && let Some(core) = core.upgrade()
        {
            core.keep_undelivered(pending);
        }
    }
}

impl SessionCore {
    /// Keeps an answer that nobody has received, or will keep it once there is one.
    pub(super) fn keep_undelivered(self: &Arc<Self>, pending: PendingAnswer) {
        if matches!(pending.what, AnswerSource::Replay(_)) || pending.is_answered_elsewhere() {
            return;
        }
        let mut data = self.lock();
        if let AnswerSource::Call(entry) | AnswerSource::Asked(entry) = &pending.what {
            let is_known = data.undelivered.iter().any(|other| other.is_of(entry));
            // What was cancelled is wanted by nobody, or was told as abandoned; what was delivered under another id is
            // known.
            if is_known || entry.phase() >= crate::ledger::Phase::Delivered || entry.is_unwanted() {
                return;
            }
        }
        data.undelivered.push(pending);
        let surplus = data.undelivered.len().saturating_sub(MAX_UNDELIVERED);
        if surplus > 0 {
            let mut left = surplus;
            data.undelivered.retain(|pending| {
                let goes = left > 0 && !pending.writes();
                left -= usize::from(goes);
                !goes
            });
        }
        self.hand_over(&mut data);
    }

    /// Gives the answers that nobody has received to the present connection, once they are there.
    pub(super) fn hand_over(self: &Arc<Self>, data: &mut super::SessionData) {
        if data.connection.is_none() {
            return;
        }
        let undelivered = std::mem::take(&mut data.undelivered);
        for pending in undelivered {
            if pending.is_answered_elsewhere() {
                continue;
            }
            match pending.response() {
                Some(response) => {
                    if self.holds_foreign_text(&pending.name, &response) {
                        data.ledger.announce_foreign_text();
                    }
                    let answer = Answer {
                        call_id: pending.call_id.clone(),
                        name: pending.name.clone(),
                        response,
                        trace: pending.trace(),
                        is_wanted: true,
                        guard: DeliveryGuard::new(self, pending),
                    };
                    data.events.push_back(ClientEvent::Answer { why: DeliveryReason::Late, answer });
                }
                None => data.undelivered.push(pending),
            }
        }
        self.event_queued.notify_waiters();
    }

    pub(super) fn mark_delivered(self: &Arc<Self>, entry: &Arc<Entry>) {
        let mut data = self.lock();
        data.ledger.mark_delivered(entry);
        if entry.answer().is_some_and(|response| self.holds_foreign_text(&entry.tool, &response)) {
            data.ledger.turn().has_read_foreign_text = true;
        }
        data.undelivered.retain(|pending| !pending.is_of(entry));
        // A question or a failure that may pass is no outcome: on record, it would stand in the way of the real one.
        if entry.writes && entry.is_final() {
            data.unsaved.add(entry, self.shared.policy.max_remembered_calls);
            self.save_soon(&mut data);
        }
    }
}

impl SessionCore {
    /// Whether an answer may hold text that neither the user nor this server wrote. What no handler has answered does not.
    pub(super) fn holds_foreign_text(&self, tool: &str, response: &ToolResponse) -> bool {
        let has_run = match &response.outcome {
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
        has_run && self.snapshot.find(tool).is_some_and(|tool| reads_foreign_text(tool.metadata()))
    }
}

impl PendingAnswer {
    pub(super) fn is_of(&self, entry: &Arc<Entry>) -> bool {
        matches!(&self.what, AnswerSource::Call(other) | AnswerSource::Asked(other) if Arc::ptr_eq(other, entry))
    }

    fn writes(&self) -> bool {
        matches!(&self.what, AnswerSource::Call(entry) | AnswerSource::Asked(entry) if entry.writes)
    }

    /// Whether the person's word will bring the answer, and not the message that made the call.
    fn is_answered_elsewhere(&self) -> bool {
        matches!(&self.what, AnswerSource::Call(entry) if entry.has_confirmation())
    }

    fn trace(&self) -> Option<Trace> {
        match &self.what {
            AnswerSource::Call(entry) | AnswerSource::Asked(entry) => entry.trace(),
            AnswerSource::Replay(_) | AnswerSource::Refusal(_) => None,
        }
    }

    fn response(&self) -> Option<Arc<ToolResponse>> {
        match &self.what {
            AnswerSource::Call(entry) | AnswerSource::Asked(entry) | AnswerSource::Replay(entry) => {
                entry.answer()
            }
            AnswerSource::Refusal(response) => Some(response.clone()),
        }
    }
}

impl Entry {
    /// Whether nobody waits for the answer any more: the call was cancelled, whether it did something or not.
    fn is_unwanted(&self) -> bool {
        self.answer().is_some_and(|response| self.is_cancelled() || is_cancelled(&response))
    }
}

/// Whether a call was cancelled.
pub(super) fn is_cancelled(response: &ToolResponse) -> bool {
    matches!(&response.outcome, Outcome::Failure(error) if error.kind == ErrorType::Cancelled)
}
