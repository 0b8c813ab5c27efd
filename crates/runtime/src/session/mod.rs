//! One conversation: its turns, its calls, its state, its connection.
//!
//! A session owns the tasks its calls run in, so that a dropped request drops no call. Everything that several calls
//! could disagree about is in one [`SessionData`] behind one lock, which is never held across an await. What happens to a
//! call is in `pipeline`, and to a request for confirmation in `confirmation`; both build on this module, and it does not
//! know them.

mod answer;
mod audit;
mod connection;
mod data;
mod end;
mod events;
mod facts;
mod heard;
mod new_rows;
mod rows;
mod save;
mod turns;
mod undelivered;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use quarterdeck_contracts::handler::HandlerFault;
use quarterdeck_contracts::{ErrorType, Mode, Namespaces, StoreError, ToolError, ToolResponse};
use tokio::sync::Notify;

pub use answer::{Answer, DeliveryReceipt, Reply};
pub use connection::Connection;
pub use data::ConfirmationMode;
pub use events::{ClientEvent, DeliveryReason};
pub use heard::HeardReceipt;
pub use turns::TurnStart;

pub(crate) use answer::{AnswerOwner, AnswerSource, PendingAnswer, is_cancelled};
pub(crate) use audit::AuditRecord;
pub(crate) use data::{PendingConfirmation, SessionData, UnadmittedMessage};
pub(crate) use new_rows::NewRows;
pub(crate) use rows::{CallRow, SessionRow, session_key};

use crate::capabilities::knowledge::readable;
use crate::envelope::refusal_error;
use crate::gates::{ClientFacts, missing_condition};
use crate::ledger::Ledger;
use crate::ownership::Lease;
use crate::registry::{LoadedTool, Registry, Snapshot};
use crate::shared::Shared;
use crate::state::SessionState;

/// One conversation of one client in one mode. Cheap to clone; all clones are the same session.
#[derive(Clone)]
pub struct Session {
    pub(crate) core: Arc<SessionCore>,
}

/// What all handles and tasks of a session share.
pub(crate) struct SessionCore {
    pub(crate) id: Arc<str>,
    pub(crate) client: Arc<str>,
    pub(crate) mode: Mode,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) created_ms: u64,
    /// By which this process has it; absent where it is alone on its store.
    pub(crate) lease: Option<Lease>,
    /// Whether it is listed, and counts among those that are open.
    pub(crate) is_registered: AtomicBool,
    data: Mutex<SessionData>,
    /// What its first commit has to store, until it has.
    new_rows: Mutex<Option<NewRows>>,
    /// What last went wrong inside a handler, until an operator asks for it. Not kept over a restart.
    fault: Mutex<Option<HandlerFault>>,
    /// Wakes the connection when there is an event for it.
    event_queued: Notify,
}

impl SessionCore {
    pub(crate) fn new(
        row: &SessionRow,
        id: Arc<str>,
        snapshot: Arc<Snapshot>,
        shared: Arc<Shared>,
        client: Arc<ClientFacts>,
        lease: Option<Lease>,
    ) -> Arc<Self> {
        let data = SessionData::new(row, new_ledger(&shared, row.turn), client);
        Arc::new(Self {
            id,
            client: row.client_id.as_str().into(),
            mode: row.mode,
            snapshot,
            shared,
            created_ms: row.created_ms,
            lease,
            is_registered: AtomicBool::new(false),
            data: Mutex::new(data),
            new_rows: Mutex::default(),
            fault: Mutex::default(),
            event_queued: Notify::new(),
        })
    }

    /// Of several faults the last counts: the one of a call that another call made comes before the other's own.
    pub(crate) fn set_fault(&self, fault: HandlerFault) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
    }

    /// An empty ledger at a turn.
    pub(crate) fn new_ledger(&self, turn: u64) -> Ledger {
        new_ledger(&self.shared, turn)
    }

    /// A panic while it is held leaves consistent data: every change is made in one step.
    pub(crate) fn lock(&self) -> MutexGuard<'_, SessionData> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> SystemTime {
        self.shared.clock.now()
    }

    /// The clock for deadlines, in milliseconds since 1970. It never goes back, even if the system clock is set back.
    pub(crate) fn now_ms(&self) -> u64 {
        self.shared.steady.now_ms()
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.lock().connection.current.is_some()
    }

    /// The envelope of a call that did not run.
    pub(crate) fn refusal(&self, tool: &str, error: ToolError) -> Arc<ToolResponse> {
        Arc::new(self.snapshot.refuse(tool, error, self.now()))
    }

    /// The error of a call that could not start because the store failed.
    pub(crate) fn store_failed(&self, error: &StoreError) -> ToolError {
        tracing::error!(session = %self.id, error = %error, "store failed");
        let message = "Nothing can be recorded at the moment, so nothing was done.".to_owned();
        refusal_error(ErrorType::Transient, message).retryable()
    }

    /// When what is stored now may be forgotten.
    pub(crate) fn keep_until(&self) -> Option<u64> {
        Some(self.now_ms() + self.shared.policy.retention.as_millis() as u64)
    }
}

fn new_ledger(shared: &Shared, turn: u64) -> Ledger {
    Ledger::new(turn, shared.policy.max_remembered_calls, shared.metrics.tracked_turns())
}

impl Session {
    pub fn id(&self) -> &str {
        &self.core.id
    }

    /// What last went wrong inside a handler of this session. For the operator alone, never for a model or a user; a call
    /// that was retried with success may leave one behind.
    pub fn take_fault(&self) -> Option<HandlerFault> {
        self.core.fault.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub fn client(&self) -> &str {
        &self.core.client
    }

    pub fn mode(&self) -> Mode {
        self.core.mode
    }

    /// The tools it was pinned to.
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.core.snapshot
    }

    /// Logs when a reload has replaced the session's tools, which happens in development. The session keeps them, unless
    /// the registry follows a folder.
    pub fn warn_if_tools_changed(&self, registry: &Registry) {
        let snapshot = &self.core.snapshot;
        if !registry.has(snapshot) && !registry.is_followed() {
            let (pinned, current) = (snapshot.version(), registry.snapshot());
            let (session, current) = (self.id(), current.version());
            tracing::error!(session, pinned, current, "session continues with reloaded tools");
        }
    }

    /// The tools that are available to this client as things are, those of the other mode included.
    pub fn available_tools(&self) -> impl Iterator<Item = &LoadedTool> {
        let client = self.core.lock().client.clone();
        let present = &self.core.shared.site.present;
        self.core.snapshot.tools().filter(move |tool| {
            let required = tool.metadata().availability.as_ref();
            required.is_none_or(|required| missing_condition(required, &client, present).is_none())
        })
    }

    /// The parts of the knowledge base that this client may search.
    pub fn readable_namespaces(&self) -> Namespaces {
        readable(self.core.lock().client.authenticated)
    }

    pub fn state(&self) -> SessionState {
        self.core.lock().controller.state().clone()
    }

    /// The present turn, counted from one; zero before the first.
    pub fn turn(&self) -> u64 {
        self.core.lock().ledger.turn_number()
    }
}
