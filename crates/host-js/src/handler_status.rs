//! What a host knows about one handler: its quarantine record, and what it holds.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quarterdeck_contracts::handler::{HostError, HostEvent, HostObserver, Quarantine, StuckCall};

use crate::quarantine::{Admission, QuarantineRecord, Threads};

/// One handler's state. Handlers of the same tool and the same source share it, also across reloads.
pub(crate) struct HandlerStatus {
    pub(crate) id: u64,
    pub(crate) tool_id: String,
    monitor: Arc<HostMonitor>,
    record: Mutex<QuarantineRecord>,
    /// Threads that its work holds past its deadline. Changed by the pool alone.
    stuck: AtomicUsize,
    calls: AtomicUsize,
}

/// Reports quarantines to the operator, and counts them.
#[derive(Default)]
pub(crate) struct HostMonitor {
    observer: Mutex<Option<Arc<dyn HostObserver>>>,
    quarantines: AtomicU64,
    statuses: AtomicU64,
    /// Threads that are stuck, of all handlers.
    stuck: AtomicUsize,
}

impl HostMonitor {
    pub(crate) fn observe(&self, observer: Arc<dyn HostObserver>) {
        *self.observer.lock().unwrap_or_else(PoisonError::into_inner) = Some(observer);
    }

    pub(crate) fn quarantines(&self) -> u64 {
        self.quarantines.load(Ordering::Relaxed)
    }

    pub(crate) fn stuck(&self) -> usize {
        self.stuck.load(Ordering::Relaxed)
    }

    fn notify(&self, event: HostEvent) {
        let observer = self.observer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(observer) = observer {
            observer.observe(event);
        }
    }
}

impl HandlerStatus {
    pub(crate) fn open(tool_id: &str, monitor: &Arc<HostMonitor>, first_backoff: Duration) -> Arc<Self> {
        Arc::new(Self {
            id: monitor.statuses.fetch_add(1, Ordering::Relaxed),
            tool_id: tool_id.to_owned(),
            monitor: monitor.clone(),
            record: Mutex::new(QuarantineRecord::new(first_backoff)),
            stuck: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
        })
    }

    /// Begins a call, unless the handler is out of service. `max_stuck` is how many stuck threads a host tolerates.
    pub(crate) fn admit(self: &Arc<Self>, max_stuck: usize) -> Result<CallPermit, HostError> {
        let now = Instant::now();
        let is_crowded = self.stuck.load(Ordering::Relaxed) > 0 || self.monitor.stuck() >= max_stuck;
        let threads = if is_crowded { Threads::Stuck } else { Threads::Fine };
        match self.record().admit(now, threads) {
            Admission::Allowed => Ok(CallPermit { trial: None }),
            Admission::OnTrial => Ok(CallPermit { trial: Some(self.clone()) }),
            Admission::Refused(wait) => Err(refusal(wait)),
        }
    }

    /// The error of a call while the handler is out of service.
    pub(crate) fn refusal(&self) -> HostError {
        refusal(self.record().wait(Instant::now()))
    }

    /// The handler as operators see it while it is out of service.
    pub(crate) fn quarantine(&self) -> Option<Quarantine> {
        let record = self.record();
        record.is_out_of_service().then(|| self.describe(&record))
    }

    pub(crate) fn lift(&self) -> bool {
        self.record().lift()
    }

    /// Counts a call, if no more than `max` are in progress.
    pub(crate) fn count_call(&self, max: usize) -> bool {
        let add = |calls: usize| (calls < max).then_some(calls + 1);
        self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    pub(crate) fn uncount_call(&self) {
        self.calls.fetch_sub(1, Ordering::Relaxed);
    }

    /// A thread is stuck from now on.
    pub(crate) fn count_stuck(&self) {
        self.stuck.fetch_add(1, Ordering::Relaxed);
        self.monitor.stuck.fetch_add(1, Ordering::Relaxed);
    }

    /// A stuck thread has completed.
    pub(crate) fn uncount_stuck(&self) {
        self.stuck.fetch_sub(1, Ordering::Relaxed);
        self.monitor.stuck.fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes the handler out of service because of work that did not end, unless it is already.
    pub(crate) fn strike(&self, call: Option<StuckCall>) {
        let mut record = self.record();
        if !record.strike(Instant::now()) {
            return;
        }
        let quarantine = self.describe(&record);
        drop(record);
        self.monitor.quarantines.fetch_add(1, Ordering::Relaxed);
        self.monitor.notify(HostEvent::Quarantined { quarantine, call });
    }

    fn describe(&self, record: &QuarantineRecord) -> Quarantine {
        Quarantine {
            tool_id: self.tool_id.clone(),
            strikes: record.strikes(),
            stuck_threads: self.stuck.load(Ordering::Relaxed),
            retry_after_ms: milliseconds(record.wait(Instant::now())),
        }
    }

    fn record(&self) -> MutexGuard<'_, QuarantineRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Permission to run one call. A trial whose permit is dropped uncompleted has decided nothing.
pub(crate) struct CallPermit {
    trial: Option<Arc<HandlerStatus>>,
}

impl CallPermit {
    /// The call has ended by itself, within its time.
    pub(crate) fn complete(mut self) {
        if let Some(status) = self.trial.take()
            && status.record().pass(Instant::now())
        {
            status.monitor.notify(HostEvent::Released { tool_id: status.tool_id.clone() });
        }
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        if let Some(status) = self.trial.take() {
            status.record().postpone(Instant::now());
        }
    }
}

fn refusal(wait: Duration) -> HostError {
    HostError::Quarantined { retry_after_ms: milliseconds(wait).max(1) }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
