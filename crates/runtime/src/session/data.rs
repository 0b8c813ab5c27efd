//! What the calls of a session share.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quarterdeck_contracts::handler::SessionFacts;
use quarterdeck_contracts::{ConfirmationRequest, Mode, ToolResponse};

use super::answer::PendingAnswer;
use super::events::ClientEvent;
use super::rows::{SessionRow, refusal_key};
use crate::call::Call;
use crate::gates::ClientFacts;
use crate::ledger::{CallContent, Entry, Ledger};
use crate::state::StateController;
use crate::tasks::TaskOutcome;

/// Everything that calls could disagree about, behind one lock.
pub(crate) struct SessionData {
    /// What is known about the client; new with each resumption, since a sign-in ends.
    pub(crate) client: Arc<ClientFacts>,
    pub(crate) ledger: Ledger,
    pub(crate) controller: StateController,
    pub(crate) connection: ConnectionState,
    pub(crate) events: VecDeque<ClientEvent>,
    pub(crate) undelivered: Vec<PendingAnswer>,
    pub(crate) confirmations: Vec<PendingConfirmation>,
    /// Calls that run or will run, and have no answer yet.
    pub(crate) unfinished: Vec<Arc<Entry>>,
    /// Messages whose arguments are still being checked.
    pub(crate) unadmitted: Vec<Arc<UnadmittedMessage>>,
    pub(crate) unsaved: Unsaved,
    pub(crate) notes: ModelNotes,
    /// Messages that have begun a turn, the latest last.
    pub(crate) turn_keys: VecDeque<(String, u64)>,
    pub(crate) call_ids: CallIds,
    /// What handlers are given about the session; made anew when it changes.
    pub(crate) facts: Option<(u64, Arc<SessionFacts>)>,
    pub(crate) seen_ms: u64,
}

/// What the model has not seen and is to be told.
#[derive(Default)]
pub(crate) struct ModelNotes {
    pub(crate) texts: Vec<String>,
    /// Ended tasks. Each is marked as told in the store, so they are not texts yet.
    pub(crate) task_outcomes: Vec<TaskOutcome>,
}

/// What happens to a call that the user has to approve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfirmationMode {
    /// The call waits for the user (text): its one result is the outcome.
    Suspend,
    /// The call is answered CONFIRMATION_REQUIRED at once (voice): the outcome comes later, as a note and an event.
    AnswerFirst,
}

/// Which connection is the present one, and how it takes requests for confirmation.
pub(crate) struct ConnectionState {
    pub(crate) current: Option<u64>,
    /// How many there have been.
    pub(crate) opened: u64,
    pub(crate) confirmation_mode: ConfirmationMode,
    /// Where the client was last heard from, if a block must hold for it there.
    pub(crate) address: Option<String>,
}

/// The ids that calls get which have none of their provider's.
pub(crate) struct CallIds {
    /// How many calls were made, with and without a provider's id.
    pub(crate) count: u64,
    /// Different after each restart, so that no id is given twice.
    pub(crate) prefix: String,
}

/// A request for confirmation that the user has not answered.
pub(crate) struct PendingConfirmation {
    /// The call that asked first, which is the one that will run.
    pub(crate) call_id: Arc<str>,
    pub(crate) content: CallContent,
    /// The call that waits for it. Without one, the outcome goes into a note.
    pub(crate) suspended: Option<Arc<Entry>>,
    /// What was shown, token included: it may have to be shown again to the same user. Absent after a restart.
    pub(crate) request: Option<ConfirmationRequest>,
    /// The hash of its token, which is its key in the store.
    pub(crate) hash: String,
    pub(crate) expires_ms: u64,
    /// Whether it is being resolved at this moment.
    pub(crate) is_claimed: bool,
    /// How often the user has said another code than the one that the tool demands.
    pub(crate) wrong_codes: u8,
}

/// A message whose arguments are being checked, and which of its calls were cancelled meanwhile.
pub(crate) struct UnadmittedMessage {
    calls: Vec<(Option<String>, AtomicBool)>,
}

impl UnadmittedMessage {
    pub(crate) fn new(calls: &[Call]) -> Arc<Self> {
        Arc::new(Self { calls: calls.iter().map(|call| (call.id.clone(), AtomicBool::new(false))).collect() })
    }

    pub(super) fn cancel(&self, ids: &[&str]) {
        let named = self.calls.iter().filter(|(id, _)| id.as_deref().is_some_and(|id| ids.contains(&id)));
        named.for_each(|(_, is_cancelled)| is_cancelled.store(true, Ordering::Relaxed));
    }

    pub(super) fn cancel_all(&self) {
        self.calls.iter().for_each(|(_, is_cancelled)| is_cancelled.store(true, Ordering::Relaxed));
    }

    pub(crate) fn is_cancelled(&self, index: usize) -> bool {
        self.calls.get(index).is_some_and(|(_, is_cancelled)| is_cancelled.load(Ordering::Relaxed))
    }
}

/// What is not stored yet. Losing it costs a second look-up, nothing else.
#[derive(Default)]
pub(crate) struct Unsaved {
    pub(crate) entries: Vec<Arc<Entry>>,
    pub(crate) refusals: Vec<(String, CallContent, Arc<ToolResponse>)>,
    pub(crate) forgotten: Vec<Arc<str>>,
    pub(crate) session: bool,
    pub(crate) is_scheduled: bool,
}

impl Unsaved {
    /// Adds a call. Those that the ledger has forgotten in the meantime are dropped, so that a model that is quicker than
    /// the store does not fill the memory.
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
    pub(crate) fn new(row: &SessionRow, ledger: Ledger, client: Arc<ClientFacts>) -> Self {
        let confirmation_mode = match row.mode {
            Mode::Text => ConfirmationMode::Suspend,
            Mode::Voice => ConfirmationMode::AnswerFirst,
        };
        Self {
            client,
            ledger,
            controller: StateController::new(row.state.clone()),
            connection: ConnectionState { current: None, opened: 0, confirmation_mode, address: None },
            events: VecDeque::new(),
            undelivered: Vec::new(),
            confirmations: Vec::new(),
            unfinished: Vec::new(),
            unadmitted: Vec::new(),
            unsaved: Unsaved::default(),
            notes: ModelNotes::default(),
            turn_keys: row.turn_keys.iter().cloned().collect(),
            call_ids: CallIds { count: row.calls_made, prefix: "call_".into() },
            facts: None,
            seen_ms: row.seen_ms,
        }
    }

    /// Counts a call and gives it its id: the provider's, or one of ours.
    pub(crate) fn next_call_id(&mut self, call: &Call) -> Arc<str> {
        let ids = &mut self.call_ids;
        ids.count += 1;
        // Without the machinery of `format!`, which takes longer than to enter the call into the ledger.
        let own_id = || [&*ids.prefix, &ids.count.to_string()].concat().into();
        call.id.as_deref().map_or_else(own_id, Arc::from)
    }

    /// Enters a call that will run into the ledger.
    pub(crate) fn insert_running(&mut self, entry: &Arc<Entry>) {
        if let Some(forgotten) = self.ledger.insert(entry.clone()) {
            forgotten.is_forgotten.store(true, Ordering::Relaxed);
            if forgotten.is_saved.load(Ordering::Relaxed) {
                self.unsaved.forgotten.push(forgotten.key().clone());
            }
        }
        self.unfinished.push(entry.clone());
    }

    /// Remembers a refusal for its id, here and in the store.
    pub(crate) fn remember_refusal(
        &mut self,
        id: &str,
        content: &CallContent,
        response: &Arc<ToolResponse>,
        turn: u64,
    ) {
        let forgotten = self.ledger.remember_refusal(id, content.clone(), response.clone(), turn);
        self.unsaved.forgotten.extend(forgotten.map(|id| refusal_key(&id)));
        self.unsaved.refusals.push((id.to_owned(), content.clone(), response.clone()));
    }

    /// A call that was answered without having run may be made again; its id stands for the answer.
    pub(crate) fn replace_with_refusal(&mut self, entry: &Arc<Entry>, response: &Arc<ToolResponse>) {
        self.ledger.remove(entry);
        if let Some(id) = &entry.provider_id {
            self.remember_refusal(id, &entry.content, response, entry.turn);
        }
    }

    pub(crate) fn find_confirmation(&mut self, hash: &str) -> Option<&mut PendingConfirmation> {
        self.confirmations.iter_mut().find(|confirmation| confirmation.hash == hash)
    }

    pub(crate) fn remove_confirmation(&mut self, hash: &str) -> Option<PendingConfirmation> {
        let place = self.confirmations.iter().position(|confirmation| confirmation.hash == hash)?;
        Some(self.confirmations.remove(place))
    }
}
