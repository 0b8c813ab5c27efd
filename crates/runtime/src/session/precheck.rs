//! Arguments that take long to judge are judged before their call is admitted.
//!
//! Calls are admitted under the session's lock, which nothing may wait for. So a message with such a call is set aside,
//! its calls are judged on other threads, and only then is it admitted, as a whole and in order like any other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;

use super::SessionCore;
use super::admit::view;
use super::batch::Batch;
use crate::call::Call;
use crate::gates::{CheckedArguments, clamp};
use crate::validation;

/// A message whose calls are being judged, and which of them were cancelled meanwhile.
pub(crate) struct UnadmittedMessage {
    calls: Vec<(Option<String>, AtomicBool)>,
}

impl UnadmittedMessage {
    fn new(calls: &[Call]) -> Arc<Self> {
        Arc::new(Self { calls: calls.iter().map(|call| (call.id.clone(), AtomicBool::new(false))).collect() })
    }

    pub(super) fn cancel(&self, ids: &[&str]) {
        let named = self.calls.iter().filter(|(id, _)| id.as_deref().is_some_and(|id| ids.contains(&id)));
        named.for_each(|(_, is_cancelled)| is_cancelled.store(true, Ordering::Relaxed));
    }

    pub(super) fn cancel_all(&self) {
        self.calls.iter().for_each(|(_, is_cancelled)| is_cancelled.store(true, Ordering::Relaxed));
    }

    pub(super) fn is_cancelled(&self, index: usize) -> bool {
        self.calls.get(index).is_some_and(|(_, is_cancelled)| is_cancelled.load(Ordering::Relaxed))
    }
}

/// A call with what is known about it before it is admitted.
pub(super) struct Submitted {
    pub(super) call: Call,
    pub(super) judged: Option<CheckedArguments>,
    pub(super) is_cancelled: bool,
}

impl SessionCore {
    /// Admits the calls of one message and starts them, at once if judging them is quick.
    pub(super) fn submit(self: &Arc<Self>, calls: Vec<Call>) -> Batch {
        let judged = calls.iter().take(self.shared.policy.max_calls_per_message);
        if judged.clone().all(|call| self.is_quick(call)) {
            let plain = |call| Submitted { call, judged: None, is_cancelled: false };
            return self.admit_message(calls.into_iter().map(plain));
        }
        let message = UnadmittedMessage::new(&calls);
        self.lock().unadmitted.push(message.clone());
        let (sender, batch) = oneshot::channel();
        tokio::spawn(self.clone().check_and_admit(calls, message, sender));
        Batch::pending(self, batch)
    }

    async fn check_and_admit(
        self: Arc<Self>,
        calls: Vec<Call>,
        message: Arc<UnadmittedMessage>,
        sender: oneshot::Sender<Batch>,
    ) {
        let most = self.shared.policy.max_calls_per_message;
        let mut submitted = Vec::with_capacity(calls.len());
        for (index, call) in calls.into_iter().enumerate() {
            let judged = if index < most { self.precheck(&call).await } else { None };
            submitted.push(Submitted { call, judged, is_cancelled: false });
        }
        self.lock().unadmitted.retain(|other| !Arc::ptr_eq(other, &message));
        for (index, call) in submitted.iter_mut().enumerate() {
            call.is_cancelled = message.is_cancelled(index);
        }
        // A batch that is not waited for any more hands its answers to the next connection when it is dropped.
        let _ = sender.send(self.admit_message(submitted.into_iter()));
    }

    /// What a call's arguments are found to be, if finding out takes long.
    pub(super) async fn precheck(&self, call: &Call) -> Option<CheckedArguments> {
        if self.is_quick(call) {
            return None;
        }
        let tool = self.snapshot.find(&call.name)?;
        let mut args = call.args.clone();
        clamp(view(tool), self.shared.policy.budgets(self.mode), &mut args);
        Some(validation::check_arguments(&tool.parameters, args).await)
    }

    fn is_quick(&self, call: &Call) -> bool {
        self.snapshot.find(&call.name).is_none_or(|tool| tool.parameters.is_quick(&call.args))
    }
}
