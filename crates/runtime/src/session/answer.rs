//! Answers on their way to a client. One that is dropped undelivered is kept for the next connection.

use std::fmt;
use std::sync::{Arc, Weak};

use quarterdeck_contracts::{ConfirmationRequest, ErrorType, Outcome, ToolResponse};

use crate::gates::Trace;
use crate::ledger::{CallUpdate, Entry};

/// What came of one call of a message.
#[derive(Debug)]
pub enum Reply {
    Answer(Answer),
    /// It waits for the user's approval, which was requested.
    AwaitingConfirmation {
        call_id: Arc<str>,
        name: Arc<str>,
        /// What the user is asked. It holds no token.
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
/// The sender confirms it with [`Answer::mark_delivered`]. One that is dropped before that is handed to the session's
/// next connection.
#[derive(Debug)]
pub struct Answer {
    /// The id under which the call came, or ours when it had none.
    pub call_id: Arc<str>,
    pub name: Arc<str>,
    /// The envelope. It holds no token, so any of it may be shown to a model.
    pub response: Arc<ToolResponse>,
    /// What the gates said about the call; `None` when none was asked, or it is from before a restart.
    pub trace: Option<Trace>,
    /// Whether the model still waits for it. A model that has cancelled a call must not be answered.
    pub is_wanted: bool,
    guard: DeliveryGuard,
}

impl Answer {
    pub(crate) fn new(
        owner: &Arc<impl AnswerOwner + 'static>,
        pending: PendingAnswer,
        response: Arc<ToolResponse>,
        trace: Option<Trace>,
        is_wanted: bool,
    ) -> Self {
        let (call_id, name) = (pending.call_id.clone(), pending.name.clone());
        let owner = Arc::downgrade(owner) as Weak<dyn AnswerOwner>;
        let guard = DeliveryGuard { undelivered: Some((owner, pending)) };
        Self { call_id, name, response, trace, is_wanted, guard }
    }

    /// The answer of a call that was suspended until the user had decided.
    pub(crate) fn to_suspended(
        owner: &Arc<impl AnswerOwner + 'static>,
        entry: &Arc<Entry>,
        response: Arc<ToolResponse>,
    ) -> Self {
        let source = AnswerSource::Confirmed(entry.clone());
        let pending = PendingAnswer { source, ..PendingAnswer::of_call(entry) };
        Self::new(owner, pending, response, entry.trace(), true)
    }

    /// An answer that is lost without harm.
    pub(crate) fn unguarded(call_id: Arc<str>, name: Arc<str>, response: Arc<ToolResponse>) -> Self {
        let guard = DeliveryGuard { undelivered: None };
        Self { call_id, name, response, trace: None, is_wanted: true, guard }
    }

    /// An answer that the model does not wait for, to inform the client.
    pub(crate) fn notice(
        call_id: Arc<str>,
        name: Arc<str>,
        response: Arc<ToolResponse>,
        trace: Option<Trace>,
    ) -> Self {
        Self { is_wanted: false, trace, ..Self::unguarded(call_id, name, response) }
    }

    /// The answer has been sent.
    pub fn mark_delivered(self) {
        drop(self.into_receipt());
    }

    /// The answer has been sent to a receiver that may forget it.
    pub fn into_receipt(mut self) -> DeliveryReceipt {
        DeliveryReceipt { of: self.guard.release() }
    }
}

/// The session that an answer belongs to.
pub(crate) trait AnswerOwner: Send + Sync {
    /// Keeps an undelivered answer for the next connection.
    fn keep_undelivered(self: Arc<Self>, pending: PendingAnswer);

    fn mark_delivered(self: Arc<Self>, entry: &Arc<Entry>);

    /// The receiver of a delivered answer has forgotten it.
    fn mark_forgotten(&self, entry: &Arc<Entry>);
}

/// Proof that an answer has been sent.
#[must_use = "it is only good for being forgotten"]
pub struct DeliveryReceipt {
    of: Option<(Weak<dyn AnswerOwner>, Arc<Entry>)>,
}

impl fmt::Debug for DeliveryReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DeliveryReceipt").field(&self.of.as_ref().map(|(_, entry)| entry)).finish()
    }
}

impl DeliveryReceipt {
    /// Whether anything was done that must not be done again.
    pub fn is_write(&self) -> bool {
        self.of.as_ref().is_some_and(|(_, entry)| entry.writes)
    }

    /// The receiver has gone back to a time before the answer, as a model does that is resumed from an older handle. A
    /// write that it then calls again is not executed again, but answered from the record.
    pub fn forget(self) {
        if let Some((owner, entry)) = self.of
            && let Some(owner) = owner.upgrade()
        {
            owner.mark_forgotten(&entry);
        }
    }
}

/// Returns an answer to its session if it is dropped undelivered.
struct DeliveryGuard {
    /// A guard does not keep its session alive.
    undelivered: Option<(Weak<dyn AnswerOwner>, PendingAnswer)>,
}

impl fmt::Debug for DeliveryGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.undelivered.is_some() { "undelivered" } else { "delivered" };
        write!(f, "DeliveryGuard({state})")
    }
}

impl DeliveryGuard {
    /// Marks the answer as delivered. The call that it belongs to, if it has an entry.
    fn release(&mut self) -> Option<(Weak<dyn AnswerOwner>, Arc<Entry>)> {
        let (owner, pending) = self.undelivered.take()?;
        let entry = pending.entry()?.clone();
        owner.upgrade()?.mark_delivered(&entry);
        Some((owner, entry))
    }
}

impl Drop for DeliveryGuard {
    fn drop(&mut self) {
        if let Some((owner, pending)) = self.undelivered.take()
            && let Some(owner) = owner.upgrade()
        {
            owner.keep_undelivered(pending);
        }
    }
}

/// An answer, there or still to come, that a client has to receive.
#[derive(Clone)]
pub(crate) struct PendingAnswer {
    pub(crate) call_id: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) source: AnswerSource,
    /// What the gates said of a call without an entry of its own. An entry has its trace itself.
    pub(crate) trace: Option<Trace>,
}

#[derive(Clone)]
pub(crate) enum AnswerSource {
    /// A call in the ledger, perhaps still running.
    Call(Arc<Entry>),
    /// A call that was suspended until the user had decided. It is answered where the decision arrives.
    Confirmed(Arc<Entry>),
    /// The same call delivered again. Its answer is the first delivery's, which is not lost.
    Replay(Arc<Entry>),
    Refusal(Arc<ToolResponse>),
}

impl PendingAnswer {
    pub(crate) fn of_call(entry: &Arc<Entry>) -> Self {
        Self {
            call_id: entry.call_id.clone(),
            name: entry.tool.clone(),
            source: AnswerSource::Call(entry.clone()),
            trace: None,
        }
    }

    pub(crate) fn entry(&self) -> Option<&Arc<Entry>> {
        match &self.source {
            AnswerSource::Call(entry) | AnswerSource::Confirmed(entry) | AnswerSource::Replay(entry) => {
                Some(entry)
            }
            AnswerSource::Refusal(_) => None,
        }
    }

    /// Waits for the answer, or for the confirmation that it depends on.
    pub(crate) async fn wait_for_update(&self) -> CallUpdate {
        match &self.source {
            AnswerSource::Call(entry) | AnswerSource::Confirmed(entry) => entry.wait_for_update(false).await,
            AnswerSource::Replay(entry) => entry.wait_for_update(true).await,
            AnswerSource::Refusal(response) => CallUpdate::Answered(response.clone()),
        }
    }

    /// Whether it is the answer of this call itself, and not of a repeated delivery of it.
    pub(crate) fn is_of(&self, entry: &Arc<Entry>) -> bool {
        self.own_entry().is_some_and(|own| Arc::ptr_eq(own, entry))
    }

    pub(super) fn own_entry(&self) -> Option<&Arc<Entry>> {
        match &self.source {
            AnswerSource::Call(entry) | AnswerSource::Confirmed(entry) => Some(entry),
            AnswerSource::Replay(_) | AnswerSource::Refusal(_) => None,
        }
    }

    pub(super) fn response(&self) -> Option<Arc<ToolResponse>> {
        match &self.source {
            AnswerSource::Refusal(response) => Some(response.clone()),
            _ => self.entry().and_then(|entry| entry.answer()),
        }
    }
}

pub(crate) fn is_cancelled(response: &ToolResponse) -> bool {
    matches!(&response.outcome, Outcome::Failure(error) if error.kind == ErrorType::Cancelled)
}
