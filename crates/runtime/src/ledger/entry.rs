//! One admitted call, from its admission to the moment it was heard.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use quarterdeck_contracts::{ConfirmationRequest, ToolResponse};
use tokio::sync::Notify;

use super::hash_key;
use crate::gates::Trace;

/// How far a call has come. It only ever moves forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    /// Through the gates, waiting for its turn or for a person.
    Admitted,
    /// Its handler has begun.
    Running,
    /// It has its answer.
    Done,
    /// The answer was sent.
    Delivered,
    /// The answer was heard (voice).
    Heard,
}

/// One call in the ledger. Whoever wants its answer waits here, so that equal calls share one execution.
#[derive(Debug)]
pub(crate) struct Entry {
    /// What the call is known by, unique in its session.
    pub(crate) call_id: Arc<str>,
    /// The provider's own id, if it had a stable one.
    pub(crate) provider_id: Option<Arc<str>>,
    /// Made when it is first needed: most look-ups are forgotten before anyone asks.
    key: OnceLock<Arc<str>>,
    /// Which of several equal calls of the turn it is.
    nth: u32,
    pub(crate) tool: Arc<str>,
    /// Tool and canonical arguments: what makes two calls equal.
    pub(crate) content: Arc<str>,
    pub(crate) turn: u64,
    pub(crate) writes: bool,
    /// Whether the store knows of it.
    pub(crate) is_saved: AtomicBool,
    /// Whether the ledger has forgotten it, so that the store need not hear of it.
    pub(crate) is_forgotten: AtomicBool,
    phase: AtomicU8,
    /// Whether the store keeps its answer: one that may turn out differently next time is told and forgotten.
    kept: AtomicBool,
    cancelled: AtomicBool,
    cancel: Notify,
    question: OnceLock<Arc<ConfirmationRequest>>,
    answer: OnceLock<Arc<ToolResponse>>,
    /// What the gates said, for whoever is shown the answer. Not kept over a restart.
    trace: Mutex<Option<Trace>>,
    /// Wakes those who wait for an answer or a question.
    news: Notify,
}

/// What there is to tell about a call.
#[derive(Debug, Clone)]
pub(crate) enum News {
    /// It has its answer.
    Answered(Arc<ToolResponse>),
    /// It waits for a person. The request holds no token.
    Asked(Arc<ConfirmationRequest>),
}

/// What identifies an entry.
pub(crate) struct Identity {
    pub(crate) call_id: Arc<str>,
    pub(crate) provider_id: Option<Arc<str>>,
    /// Which of several equal calls of the turn it is.
    pub(crate) nth: u32,
    pub(crate) tool: Arc<str>,
    pub(crate) content: Arc<str>,
    pub(crate) turn: u64,
    pub(crate) writes: bool,
}

impl Entry {
    pub(crate) fn new(identity: Identity) -> Arc<Self> {
        let Identity { call_id, provider_id, nth, tool, content, turn, writes } = identity;
        Arc::new(Self {
            call_id,
            provider_id,
            key: OnceLock::new(),
            nth,
            tool,
            content,
            turn,
            writes,
            is_saved: AtomicBool::new(false),
            is_forgotten: AtomicBool::new(false),
            phase: AtomicU8::new(Phase::Admitted as u8),
            kept: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            cancel: Notify::new(),
            question: OnceLock::new(),
            answer: OnceLock::new(),
            trace: Mutex::default(),
            news: Notify::new(),
        })
    }

    /// `hash:<turn>:<16 hex digits>`, which is also its key in the store.
    pub(crate) fn key(&self) -> &Arc<str> {
        self.key.get_or_init(|| hash_key(&self.content, self.turn, self.nth))
    }

    /// Gives it the key under which the store knows it.
    pub(crate) fn known_as(self: Arc<Self>, key: &str) -> Arc<Self> {
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
    pub(crate) fn begin(&self) -> bool {
        self.advance(Phase::Running);
        !self.cancelled.load(Ordering::Acquire)
    }

    /// The answer is final: it stays on record.
    pub(crate) fn keep(&self) {
        self.kept.store(true, Ordering::Release);
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.kept.load(Ordering::Acquire)
    }

    /// Asks the call to stop. Whether it does is decided by [`Entry::begin`] and by whether it writes.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        self.cancel.notify_waiters();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Ends when the call is asked to stop.
    pub(crate) async fn until_cancelled(&self) {
        wait(&self.cancel, || self.is_cancelled().then_some(())).await;
    }

    /// Gives the call its answer. The first one stands; `false` says that there was one.
    pub(crate) fn answer(&self, response: Arc<ToolResponse>) -> bool {
        let first = self.answer.set(response).is_ok();
        if first {
            self.advance(Phase::Done);
            self.news.notify_waiters();
        }
        first
    }

    /// Remembers what the gates said, with the last word of the store. Before the answer, so that both are seen together.
    pub(crate) fn judged(&self, trace: &Trace) {
        *self.trace.lock().unwrap_or_else(PoisonError::into_inner) = Some(trace.clone());
    }

    /// What the gates said, if this process has seen it.
    pub(crate) fn trace(&self) -> Option<Trace> {
        self.trace.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Suspend the call until a person has answered.
    pub(crate) fn ask(&self, question: Arc<ConfirmationRequest>) {
        if self.question.set(question).is_ok() {
            self.news.notify_waiters();
        }
    }

    /// Whether it waits or has waited for a person.
    pub(crate) fn is_asked(&self) -> bool {
        self.question.get().is_some()
    }

    /// The answer, once there is one.
    pub(crate) fn answered(&self) -> Option<Arc<ToolResponse>> {
        self.answer.get().cloned()
    }

    /// Waits for the answer.
    pub(crate) async fn wait(&self) -> Arc<ToolResponse> {
        wait(&self.news, || self.answered()).await
    }

    /// Waits for the answer, or for the question that it hangs on. A call that was asked about is answered where the
    /// person's word arrives; so whoever made it hears of the question even when there is an answer by now, and a
    /// later delivery of it hears the answer.
    pub(crate) async fn wait_for_news(&self, is_replay: bool) -> News {
        let asked = || self.question.get().cloned().map(News::Asked);
        let answered = || self.answered().map(News::Answered);
        if is_replay {
            wait(&self.news, || answered().or_else(asked)).await
        } else {
            wait(&self.news, || asked().or_else(answered)).await
        }
    }
}

/// Waits until `ready` has a value; whoever makes it so calls `notify_waiters` afterwards.
async fn wait<T>(notify: &Notify, ready: impl Fn() -> Option<T>) -> T {
    loop {
        let notified = notify.notified();
        if let Some(value) = ready() {
            return value;
        }
        notified.await;
    }
}
