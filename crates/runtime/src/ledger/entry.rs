//! One admitted call and its phases.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use quarterdeck_contracts::handler::{CancelReason, CancellationToken};
use quarterdeck_contracts::{ConfirmationRequest, ToolResponse};
use tokio::sync::Notify;

use super::{CallContent, hash_key};
use crate::gates::Trace;

/// How far a call has come. It only ever moves forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    /// Through the gates; it waits for its turn or for the user's approval.
    Admitted,
    Running,
    Done,
    Delivered,
    /// The answer was heard (voice).
    Heard,
}

/// One call in the ledger. Equal calls share one entry and wait for its answer here, so that it is executed once.
#[derive(Debug)]
pub(crate) struct Entry {
    identity: CallIdentity,
    /// Made when it is first needed: most look-ups never need it.
    key: OnceLock<Arc<str>>,
    /// Whether the store knows of it.
    pub(crate) is_saved: AtomicBool,
    /// Whether the ledger has had it in its list of reads, so that it may have to be taken out of it first.
    pub(super) is_listed: AtomicBool,
    /// Whether the ledger has forgotten it, so that it need not be stored.
    pub(crate) is_forgotten: AtomicBool,
    phase: AtomicU8,
    /// The version of its row in the store, once it is marked as started there; zero before.
    pub(crate) started_version: AtomicU64,
    /// Whether the answer is final and recorded. One that may differ next time is delivered and forgotten.
    is_final: AtomicBool,
    /// Whether it is not known if its record was stored. Another one over it could be less true.
    is_in_doubt: AtomicBool,
    cancellation: CancellationToken,
    confirmation: OnceLock<Arc<ConfirmationRequest>>,
    answer: OnceLock<Arc<ToolResponse>>,
    /// What the gates said. Not kept over a restart.
    trace: Mutex<Option<Trace>>,
    /// Wakes those who wait for an answer or a confirmation.
    updated: Notify,
}

/// What a caller of a call waits for.
#[derive(Debug, Clone)]
pub(crate) enum CallUpdate {
    Answered(Arc<ToolResponse>),
    /// It waits for the user. The request holds no token.
    AwaitingConfirmation(Arc<ConfirmationRequest>),
}

/// What identifies a call.
#[derive(Debug)]
pub(crate) struct CallIdentity {
    /// Unique in its session.
    pub(crate) call_id: Arc<str>,
    /// The provider's own id, if it had a stable one.
    pub(crate) provider_id: Option<Arc<str>>,
    /// Which of several equal calls of the turn it is.
    pub(crate) nth: u32,
    pub(crate) tool: Arc<str>,
    pub(crate) content: CallContent,
    pub(crate) turn: u64,
    pub(crate) writes: bool,
}

impl Deref for Entry {
    type Target = CallIdentity;

    fn deref(&self) -> &CallIdentity {
        &self.identity
    }
}

impl Entry {
    pub(crate) fn new(identity: CallIdentity) -> Arc<Self> {
        Arc::new(Self {
            identity,
            key: OnceLock::new(),
            is_saved: AtomicBool::new(false),
            is_listed: AtomicBool::new(false),
            is_forgotten: AtomicBool::new(false),
            phase: AtomicU8::new(Phase::Admitted as u8),
            started_version: AtomicU64::new(0),
            is_final: AtomicBool::new(false),
            is_in_doubt: AtomicBool::new(false),
            cancellation: CancellationToken::default(),
            confirmation: OnceLock::new(),
            answer: OnceLock::new(),
            trace: Mutex::default(),
            updated: Notify::new(),
        })
    }

    /// `hash:<turn>:<16 hex digits>`, which is also its key in the store.
    pub(crate) fn key(&self) -> &Arc<str> {
        self.key.get_or_init(|| hash_key(&self.content, self.turn, self.nth))
    }

    /// Gives it the key under which the store knows it.
    pub(crate) fn with_key(self: Arc<Self>, key: &str) -> Arc<Self> {
        let _ = self.key.set(key.into());
        self
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Admitted,
            1 => Phase::Running,
            2 => Phase::Done,
            3 => Phase::Delivered,
            _ => Phase::Heard,
        }
    }

    /// Moves forward; a move back is no move.
    pub(crate) fn advance(&self, to: Phase) {
        self.phase.fetch_max(to as u8, Ordering::AcqRel);
    }

    /// Begins the call, unless it was cancelled first. After this a write can no longer be cancelled.
    pub(crate) fn start(&self) -> bool {
        self.advance(Phase::Running);
        !self.is_cancelled()
    }

    /// The answer is final: it stays on record.
    pub(crate) fn mark_final(&self) {
        self.is_final.store(true, Ordering::Release);
    }

    pub(crate) fn mark_in_doubt(&self) {
        self.is_in_doubt.store(true, Ordering::Release);
    }

    pub(crate) fn is_in_doubt(&self) -> bool {
        self.is_in_doubt.load(Ordering::Acquire)
    }

    pub(crate) fn is_final(&self) -> bool {
        self.is_final.load(Ordering::Acquire)
    }

    /// Asks the call to stop. Whether it does is decided by [`Entry::start`] and by whether it writes.
    pub(crate) fn cancel(&self, reason: CancelReason) {
        self.cancellation.cancel(reason);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }

    /// Cancelled when the call is asked to stop.
    pub(crate) fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// Gives the call its answer, unless it has one; `false` if it had.
    pub(crate) fn set_answer(&self, response: Arc<ToolResponse>) -> bool {
        let first = self.answer.set(response).is_ok();
        if first {
            self.advance(Phase::Done);
            self.updated.notify_waiters();
        }
        first
    }

    /// Set before the answer, so that both are seen together.
    pub(crate) fn set_trace(&self, trace: &Trace) {
        *self.trace.lock().unwrap_or_else(PoisonError::into_inner) = Some(trace.clone());
    }

    /// What the gates said, if this process has seen it.
    pub(crate) fn trace(&self) -> Option<Trace> {
        self.trace.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn await_confirmation(&self, confirmation: Arc<ConfirmationRequest>) {
        if self.confirmation.set(confirmation).is_ok() {
            self.updated.notify_waiters();
        }
    }

    /// Whether it waits or has waited for the user's approval.
    pub(crate) fn has_confirmation(&self) -> bool {
        self.confirmation.get().is_some()
    }

    pub(crate) fn answer(&self) -> Option<Arc<ToolResponse>> {
        self.answer.get().cloned()
    }

    pub(crate) async fn wait_for_answer(&self) -> Arc<ToolResponse> {
        wait(&self.updated, || self.answer()).await
    }

    /// Waits for the answer, or for the confirmation that it depends on. A suspended call is answered where the user's
    /// decision arrives, so the message that made it gets the confirmation even when there is an answer by now, and a
    /// later delivery gets the answer.
    pub(crate) async fn wait_for_update(&self, is_replay: bool) -> CallUpdate {
        let asked = || self.confirmation.get().cloned().map(CallUpdate::AwaitingConfirmation);
        let answered = || self.answer().map(CallUpdate::Answered);
        if is_replay {
            wait(&self.updated, || answered().or_else(asked)).await
        } else {
            wait(&self.updated, || asked().or_else(answered)).await
        }
    }
}

/// Waits until `ready` has a value; `notify_waiters` is called after each change.
async fn wait<T>(notify: &Notify, ready: impl Fn() -> Option<T>) -> T {
    loop {
        let notified = notify.notified();
        if let Some(value) = ready() {
            return value;
        }
        notified.await;
    }
}
