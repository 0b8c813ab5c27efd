//! Tool calls in progress, and confirmations being resolved.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// After how long a client is told that a call is still running.
const PROGRESS_DELAY: Duration = Duration::from_millis(1_500);
/// How many confirmations of one call are resolved at the same time.
const MAX_CONFIRMATION_TASKS: usize = 16;

#[derive(Debug, Default)]
pub(super) struct PendingCalls {
    open: Vec<OpenCall>,
    /// Ids that the provider has cancelled on the present connection.
    cancelled: HashSet<String>,
    /// Counts calls that came without an id.
    unnamed: u64,
    confirmation_tasks: usize,
}

/// A tool call as the model made it.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::voice) struct RequestedCall {
    /// The provider's id, if it gave one.
    pub(in crate::voice) id: Option<String>,
    pub(in crate::voice) name: String,
    /// The id that the client knows it by.
    pub(in crate::voice) shown_id: Arc<str>,
}

#[derive(Debug)]
struct OpenCall {
    call: Arc<RequestedCall>,
    since: Instant,
    is_reported: bool,
    /// Something was said to bridge the wait for it.
    is_filled: bool,
}

impl PendingCalls {
    /// Names a call. One without an id gets its tool's name and a number, by which the client can tell calls apart.
    pub(super) fn identify(&mut self, id: Option<&str>, name: &str) -> RequestedCall {
        let id = id.filter(|id| !id.is_empty()).map(str::to_owned);
        let shown_id = match &id {
            Some(id) => id.as_str().into(),
            None => {
                self.unnamed += 1;
                format!("{name}-{}", self.unnamed).into()
            }
        };
        RequestedCall { id, name: name.to_owned(), shown_id }
    }

    pub(super) fn add(&mut self, calls: &[Arc<RequestedCall>], since: Instant) {
        let open = calls.iter().map(|call| OpenCall {
            call: call.clone(),
            since,
            is_reported: false,
            is_filled: false,
        });
        self.open.extend(open);
    }

    pub(super) fn complete(&mut self, call: &Arc<RequestedCall>) {
        self.open.retain(|open| !Arc::ptr_eq(&open.call, call));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether the wait for one of these calls has not been bridged yet.
    pub(super) fn has_unfilled(&self, calls: &[Arc<RequestedCall>]) -> bool {
        let is_meant = |open: &OpenCall| calls.iter().any(|call| Arc::ptr_eq(call, &open.call));
        self.open.iter().any(|open| !open.is_filled && is_meant(open))
    }

    /// Something is said that bridges the wait for every call that runs.
    pub(super) fn mark_filled(&mut self) {
        self.open.iter_mut().for_each(|open| open.is_filled = true);
    }

    /// The provider cancels calls: it wants no answer to them.
    pub(super) fn cancel(&mut self, ids: &[String]) {
        let is_open = |id: &&String| self.open.iter().any(|open| open.call.id.as_ref() == Some(id));
        let cancelled: Vec<_> = ids.iter().filter(is_open).cloned().collect();
        self.cancelled.extend(cancelled);
    }

    /// Whether the provider has cancelled a call. It is asked once.
    pub(super) fn take_cancelled(&mut self, call: &RequestedCall) -> bool {
        call.id.as_ref().is_some_and(|id| self.cancelled.remove(id))
    }

    /// The connection whose calls were cancelled is gone.
    pub(super) fn forget_cancelled(&mut self) {
        self.cancelled.clear();
    }

    /// Calls that have become slow, each once.
    pub(super) fn take_slow(&mut self, now: Instant) -> Vec<Arc<RequestedCall>> {
        let is_slow = |open: &&mut OpenCall| {
            !open.is_reported && now.saturating_duration_since(open.since) >= PROGRESS_DELAY
        };
        let slow = self.open.iter_mut().filter(is_slow);
        slow.map(|open| {
            open.is_reported = true;
            open.call.clone()
        })
        .collect()
    }

    /// Takes a slot for a confirmation; `false` when there is none.
    pub(super) fn begin_confirmation(&mut self) -> bool {
        let has_slot = self.confirmation_tasks < MAX_CONFIRMATION_TASKS;
        self.confirmation_tasks += usize::from(has_slot);
        has_slot
    }

    pub(super) fn end_confirmation(&mut self) {
        self.confirmation_tasks = self.confirmation_tasks.saturating_sub(1);
    }

    pub(super) fn has_confirmations(&self) -> bool {
        self.confirmation_tasks > 0
    }
}
