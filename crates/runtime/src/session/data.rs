//! What the calls of a session share.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quarterdeck_contracts::handler::SessionFacts;
use quarterdeck_contracts::{ConfirmationRequest, ToolResponse};

use super::answer::PendingAnswer;
use super::precheck::UnadmittedMessage;
use super::{ClientEvent, ConfirmationMode, SessionRow};
use crate::gates::ClientFacts;
use crate::ledger::{Entry, Ledger};
use crate::state::StateController;

/// Everything that calls could disagree about, behind one lock.
pub(crate) struct SessionData {
    /// What is known about the client; anew with each resumption, since a sign-in ends.
    pub(crate) who: Arc<ClientFacts>,
    pub(crate) ledger: Ledger,
    pub(crate) controller: StateController,
    /// Which connection is the present one, if any.
    pub(crate) connection: Option<u64>,
    pub(crate) connections: u64,
    pub(crate) confirmation_mode: ConfirmationMode,
    pub(crate) events: VecDeque<ClientEvent>,
    /// Answers that nobody has received.
    pub(crate) undelivered: Vec<PendingAnswer>,
    pub(crate) confirmations: Vec<PendingConfirmation>,
    /// Calls that have begun or will, and have no answer yet.
    pub(crate) unfinished: Vec<Arc<Entry>>,
    /// Messages whose calls are still being judged.
    pub(crate) unadmitted: Vec<Arc<UnadmittedMessage>>,
    /// What has changed since the store was told last.
    pub(crate) unsaved: Unsaved,
    /// Notes for the conversation: what happened behind the model's back.
    pub(crate) notes: Vec<String>,
    /// Messages that have begun a turn, the latest last.
    pub(crate) turn_keys: VecDeque<(String, u64)>,
    pub(crate) calls_made: u64,
    /// How the ids that we give to calls begin; other after each restart, so that none is given twice.
    pub(crate) call_prefix: String,
    /// What handlers are told about the session; made anew when it changes.
    pub(crate) facts: Option<(u64, Arc<SessionFacts>)>,
    pub(crate) seen_ms: u64,
}

/// A request for confirmation that a person has not answered.
pub(crate) struct PendingConfirmation {
    pub(crate) content: Arc<str>,
    /// The call that waits for it. Without one, the outcome is told in a note.
    pub(crate) suspended: Option<Arc<Entry>>,
    /// What was shown, token included: it may have to be shown again to the same person. Absent after a restart.
    pub(crate) request: Option<ConfirmationRequest>,
    /// Its key in the store.
    pub(crate) hash: String,
    pub(crate) expires_ms: u64,
    /// Somebody is answering it.
    pub(crate) is_claimed: bool,
}

/// What the store has not been told yet. Losing it costs a second look-up, nothing else.
#[derive(Default)]
pub(crate) struct Unsaved {
    pub(crate) entries: Vec<Arc<Entry>>,
    pub(crate) refusals: Vec<(String, Arc<str>, Arc<ToolResponse>)>,
    pub(crate) forgotten: Vec<Arc<str>>,
    pub(crate) session: bool,
    pub(crate) is_scheduled: bool,
}

impl Unsaved {
    /// The store will hear of a call. Those that the ledger has forgotten in the meantime are let go, so that a model
    /// that is quicker than the store does not fill the memory.
    pub(crate) fn add(&mut self, entry: &Arc<Entry>, max_remembered_calls: usize) {
        if self.entries.len() > 2 * max_remembered_calls {
            self.entries.retain(|entry| !entry.is_forgotten.load(Ordering::Relaxed));
        }
        self.entries.push(entry.clone());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.refusals.is_empty() && self.forgotten.is_empty() && !self.session
    }
}

impl SessionData {
    pub(crate) fn new(row: &SessionRow, max_remembered_calls: usize, who: Arc<ClientFacts>) -> Self {
        Self {
            who,
            ledger: Ledger::new(row.turn, max_remembered_calls),
            controller: StateController::new(row.state.clone()),
            connection: None,
            connections: 0,
            confirmation_mode: match row.mode {
                quarterdeck_contracts::Mode::Text => ConfirmationMode::Suspend,
                quarterdeck_contracts::Mode::Voice => ConfirmationMode::AnswerFirst,
            },
            events: VecDeque::new(),
            undelivered: Vec::new(),
            confirmations: Vec::new(),
            unfinished: Vec::new(),
            unadmitted: Vec::new(),
            unsaved: Unsaved::default(),
            notes: Vec::new(),
            turn_keys: row.turn_keys.iter().cloned().collect(),
            calls_made: row.calls_made,
            call_prefix: "call_".into(),
            facts: None,
            seen_ms: row.seen_ms,
        }
    }
}
