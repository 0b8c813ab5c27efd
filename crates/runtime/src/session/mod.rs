//! One conversation: its turns, its calls, its state, its connection.
//!
//! A session owns the tasks its calls run in, so that a dropped request drops no call. Everything that several calls
//! could disagree about is in one `SessionData` behind one lock, which is never held while anything is waited for.

mod admit;
mod answer;
mod audit;
mod batch;
mod capabilities;
mod context;
mod data;
mod events;
mod execute;
mod precheck;
mod recovery;
mod request;
mod reserve;
mod resolve;
mod rows;
mod turns;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use quarterdeck_contracts::Mode;
use tokio::sync::Notify;

pub use answer::{Answer, DeliveryReceipt, Reply};
pub use batch::Batch;
pub use events::{ClientEvent, Connection, DeliveryReason};
pub use turns::TurnStart;

pub(crate) use data::SessionData;
pub(crate) use rows::{SessionRow, session_key};

use crate::gates::{ClientFacts, missing_condition};
use crate::orchestrator::Shared;
use crate::registry::{LoadedTool, Snapshot};
use crate::state::SessionState;

/// One conversation of one client in one mode. Cheap to clone; all clones are the same session.
#[derive(Clone)]
pub struct Session {
    pub(crate) core: Arc<SessionCore>,
}

/// What happens when a call needs a person's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfirmationMode {
    /// The call waits for the person (text): its one result is the outcome.
    Suspend,
    /// The call is answered CONFIRMATION_REQUIRED at once (voice): the outcome comes later, as a note and an event.
    AnswerFirst,
}

pub(crate) struct SessionCore {
    pub(crate) id: Arc<str>,
    pub(crate) client: Arc<str>,
    pub(crate) mode: Mode,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) created_ms: u64,
    /// Whether it was made known, and counts among those that are open.
    pub(crate) is_registered: AtomicBool,
    data: Mutex<SessionData>,
    /// Wakes the connection when there is an event for it.
    event_queued: Notify,
}

impl SessionCore {
    pub(crate) fn new(
        row: &SessionRow,
        id: Arc<str>,
        snapshot: Arc<Snapshot>,
        shared: Arc<Shared>,
        who: Arc<ClientFacts>,
    ) -> Arc<Self> {
        let data = SessionData::new(row, shared.policy.max_remembered_calls, who);
        Arc::new(Self {
            id,
            client: row.client_id.as_str().into(),
            mode: row.mode,
            snapshot,
            shared,
            created_ms: row.created_ms,
            is_registered: AtomicBool::new(false),
            data: Mutex::new(data),
            event_queued: Notify::new(),
        })
    }

    /// A panic while it is held leaves consistent data: every change is made in one step.
    pub(crate) fn lock(&self) -> MutexGuard<'_, SessionData> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> SystemTime {
        self.shared.clock.now()
    }

    /// What deadlines are judged by, in milliseconds since 1970. It never goes back.
    pub(crate) fn now_ms(&self) -> u64 {
        self.shared.steady.now_ms()
    }
}

impl Session {
    /// The session's id.
    pub fn id(&self) -> &str {
        &self.core.id
    }

    /// Who is on the other end.
    pub fn client(&self) -> &str {
        &self.core.client
    }

    /// How they reach the agent.
    pub fn mode(&self) -> Mode {
        self.core.mode
    }

    /// The tools it was pinned to.
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.core.snapshot
    }

    /// Tells whoever runs this when the session goes on with other tools than a new one would get.
    pub fn warn_if_tools_changed(&self, current: &Snapshot) {
        let (pinned, current) = (self.core.snapshot.version(), current.version());
        if pinned != current {
            tracing::error!(
                session = self.id(),
                pinned,
                current,
                "a session goes on with tools that were reloaded"
            );
        }
    }

    /// The tools that are available to this client as things are, those of the other mode included.
    pub fn available_tools(&self) -> impl Iterator<Item = &LoadedTool> {
        let who = self.core.lock().who.clone();
        let present = &self.core.shared.present;
        self.core.snapshot.tools().filter(move |tool| {
            let asked = tool.metadata().availability.as_ref();
            asked.is_none_or(|asked| missing_condition(asked, &who, present).is_none())
        })
    }

    /// A copy of its state.
    pub fn state(&self) -> SessionState {
        self.core.lock().controller.state().clone()
    }

    /// The present turn, counted from one; zero before the first.
    pub fn turn(&self) -> u64 {
        self.core.lock().ledger.turn_number()
    }
}
