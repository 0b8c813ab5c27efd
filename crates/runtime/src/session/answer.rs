//! Answers, and the promise that each reaches someone.

use std::sync::{Arc, Weak};

use quarterdeck_contracts::{ConfirmationRequest, ErrorType, Outcome, ToolResponse};

use super::Inner;
use super::events::{ClientEvent, DeliveryReason};
use crate::gates::{Trace, reads_foreign_text};
use crate::ledger::Entry;

/// How many undelivered answers of calls that did not write are kept for the next connection.
const KEPT_ORPHANS: usize = 64;

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
    pub(super) receipt: Receipt,
}

impl Answer {
    /// The answer of a call that a person was asked about. Until it is delivered, somebody is owed it.
    pub(super) fn to_asked(inner: &Arc<Inner>, entry: &Arc<Entry>, response: Arc<ToolResponse>) -> Self {
        let orphan = Orphan {
            call_id: entry.call_id.clone(),
            name: entry.tool.clone(),
            what: OrphanOf::Asked(entry.clone()),
        };
        let receipt = Receipt::new(inner, orphan);
        let trace = entry.trace();
        Self { receipt, trace, ..Self::unowed(entry.call_id.clone(), entry.tool.clone(), response) }
    }

    /// An answer that is lost without harm.
    pub(super) fn unowed(call_id: Arc<str>, name: Arc<str>, response: Arc<ToolResponse>) -> Self {
        Self { call_id, name, response, trace: None, is_wanted: true, receipt: Receipt { open: None } }
    }

    /// The answer has been sent.
    pub fn mark_delivered(self) {
        drop(self.into_receipt());
    }

    /// The answer has been sent to somebody who may forget it.
    pub fn into_receipt(mut self) -> DeliveryReceipt {
        DeliveryReceipt { of: self.receipt.give() }
    }
}

/// An answer that has been sent.
#[derive(Debug)]
#[must_use = "it is only good for being forgotten"]
pub struct DeliveryReceipt {
    of: Option<(Weak<Inner>, Arc<Entry>)>,
}

impl DeliveryReceipt {
    /// Whether anything was done that must not be done again.
    pub fn is_write(&self) -> bool {
        self.of.as_ref().is_some_and(|(_, entry)| entry.writes)
    }

    /// Whoever received it has gone back to a time before it, as a model does that is resumed from an older handle. A
    /// write that is then asked for again is not done again, but answered from the record.
    pub fn forget(self) {
        if let Some((inner, entry)) = self.of
            && let Some(inner) = inner.upgrade()
        {
            inner.lock().ledger.forgotten(&entry);
        }
    }
}

/// Brings an answer back that was not delivered.
pub(super) struct Receipt {
    /// The session lives without the receipts that wait on its desk.
    open: Option<(Weak<Inner>, Orphan)>,
}

impl std::fmt::Debug for Receipt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.open.is_some() { "Receipt(open)" } else { "Receipt(given)" })
    }
}

/// An answer that nobody has received.
#[derive(Clone)]
pub(crate) struct Orphan {
    pub(crate) call_id: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) what: OrphanOf,
}

/// Where an undelivered answer comes from.
#[derive(Clone)]
pub(crate) enum OrphanOf {
    /// A call in the ledger, perhaps still running.
    Call(Arc<Entry>),
    /// A call that a person was asked about: where their word arrives, it is answered.
    Asked(Arc<Entry>),
    /// The same call delivered again. Its answer is the first delivery's, which is not lost.
    Replay(Arc<Entry>),
    /// A refusal.
    Refusal(Arc<ToolResponse>),
}

impl Receipt {
    pub(super) fn new(inner: &Arc<Inner>, orphan: Orphan) -> Self {
        Self { open: Some((Arc::downgrade(inner), orphan)) }
    }

    /// Whose answer was given, if it was a call's.
    fn give(&mut self) -> Option<(Weak<Inner>, Arc<Entry>)> {
        let (weak, orphan) = self.open.take()?;
        let (OrphanOf::Call(entry) | OrphanOf::Asked(entry) | OrphanOf::Replay(entry)) = orphan.what else {
            return None;
        };
        weak.upgrade()?.mark_delivered(&entry);
        Some((weak, entry))
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        if let Some((inner, orphan)) = self.open.take()
            && let Some(inner) = inner.upgrade()
        {
            inner.adopt(orphan);
        }
    }
}

impl Inner {
    /// Keeps an answer that nobody has received, or will keep it once there is one.
    pub(super) fn adopt(self: &Arc<Self>, orphan: Orphan) {
        if matches!(orphan.what, OrphanOf::Replay(_)) || orphan.is_answered_elsewhere() {
            return;
        }
        let mut desk = self.lock();
        if let OrphanOf::Call(entry) | OrphanOf::Asked(entry) = &orphan.what {
            let is_known = desk.orphans.iter().any(|other| other.is_of(entry));
            // What was cancelled is wanted by nobody, or was told as abandoned; what was delivered under another id is
            // known.
            if is_known || entry.phase() >= crate::ledger::Phase::DeliveryReceipt || entry.is_unwanted() {
                return;
            }
        }
        desk.orphans.push(orphan);
        let surplus = desk.orphans.len().saturating_sub(KEPT_ORPHANS);
        if surplus > 0 {
            let mut left = surplus;
            desk.orphans.retain(|orphan| {
                let goes = left > 0 && !orphan.writes();
                left -= usize::from(goes);
                !goes
            });
        }
        self.hand_over(&mut desk);
    }

    /// Gives the answers that nobody has received to the present connection, once they are there.
    pub(super) fn hand_over(self: &Arc<Self>, desk: &mut super::Desk) {
        if desk.connection.is_none() {
            return;
        }
        let orphans = std::mem::take(&mut desk.orphans);
        for orphan in orphans {
            if orphan.is_answered_elsewhere() {
                continue;
            }
            match orphan.response() {
                Some(response) => {
                    if self.holds_foreign_text(&orphan.name, &response) {
                        desk.ledger.tells_foreign_text();
                    }
                    let answer = Answer {
                        call_id: orphan.call_id.clone(),
                        name: orphan.name.clone(),
                        response,
                        trace: orphan.trace(),
                        is_wanted: true,
                        receipt: Receipt::new(self, orphan),
                    };
                    desk.events.push_back(ClientEvent::Answer { why: DeliveryReason::Late, answer });
                }
                None => desk.orphans.push(orphan),
            }
        }
        self.news.notify_waiters();
    }

    pub(super) fn mark_delivered(self: &Arc<Self>, entry: &Arc<Entry>) {
        let mut desk = self.lock();
        desk.ledger.delivered(entry);
        if entry.answered().is_some_and(|response| self.holds_foreign_text(&entry.tool, &response)) {
            desk.ledger.turn().has_read_foreign_text = true;
        }
        desk.orphans.retain(|orphan| !orphan.is_of(entry));
        // A question or a failure that may pass is no outcome: on record, it would stand in the way of the real one.
        if entry.writes && entry.is_kept() {
            desk.unsaved.add(entry, self.shared.policy.max_remembered_calls);
            self.save_soon(&mut desk);
        }
    }
}

impl Inner {
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

impl Orphan {
    pub(super) fn is_of(&self, entry: &Arc<Entry>) -> bool {
        matches!(&self.what, OrphanOf::Call(other) | OrphanOf::Asked(other) if Arc::ptr_eq(other, entry))
    }

    fn writes(&self) -> bool {
        matches!(&self.what, OrphanOf::Call(entry) | OrphanOf::Asked(entry) if entry.writes)
    }

    /// Whether the person's word will bring the answer, and not the message that made the call.
    fn is_answered_elsewhere(&self) -> bool {
        matches!(&self.what, OrphanOf::Call(entry) if entry.is_asked())
    }

    fn trace(&self) -> Option<Trace> {
        match &self.what {
            OrphanOf::Call(entry) | OrphanOf::Asked(entry) => entry.trace(),
            OrphanOf::Replay(_) | OrphanOf::Refusal(_) => None,
        }
    }

    fn response(&self) -> Option<Arc<ToolResponse>> {
        match &self.what {
            OrphanOf::Call(entry) | OrphanOf::Asked(entry) | OrphanOf::Replay(entry) => entry.answered(),
            OrphanOf::Refusal(response) => Some(response.clone()),
        }
    }
}

impl Entry {
    /// Whether nobody waits for the answer any more: the call was cancelled, whether it did something or not.
    fn is_unwanted(&self) -> bool {
        self.answered().is_some_and(|response| self.is_cancelled() || is_cancelled(&response))
    }
}

/// Whether a call was cancelled.
pub(super) fn is_cancelled(response: &ToolResponse) -> bool {
    matches!(&response.outcome, Outcome::Failure(error) if error.kind == ErrorType::Cancelled)
}
