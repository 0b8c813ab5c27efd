//! What a host knows about one handler: its record, and what it holds.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quarterdeck_contracts::handler::{HostError, HostEvent, HostObserver, Quarantine, StuckCall};

use crate::quarantine::{Entry, Record, Threads};

/// One handler's account. Handlers of the same tool and the same source share it, also across reloads.
pub(crate) struct Account {
    pub(crate) id: u64,
    pub(crate) tool_id: String,
    alarm: Arc<Alarm>,
    record: Mutex<Record>,
    /// Threads that its work holds past its deadline. Changed by the pool alone.
    stuck: AtomicUsize,
    calls: AtomicUsize,
}

/// Tells the operator, and counts.
#[derive(Default)]
pub(crate) struct Alarm {
    observer: Mutex<Option<Arc<dyn HostObserver>>>,
    quarantines: AtomicU64,
    accounts: AtomicU64,
    /// Threads that are stuck, of all handlers.
    stuck: AtomicUsize,
}

impl Alarm {
    pub(crate) fn observe(&self, observer: Arc<dyn HostObserver>) {
        *self.observer.lock().unwrap_or_else(PoisonError::into_inner) = Some(observer);
    }

    pub(crate) fn quarantines(&self) -> u64 {
        self.quarantines.load(Ordering::Relaxed)
    }

    pub(crate) fn stuck(&self) -> usize {
        self.stuck.load(Ordering::Relaxed)
    }

    fn tell(&self, event: HostEvent) {
        let observer = self.observer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(observer) = observer {
            observer.observe(event);
        }
    }
}

impl Account {
    pub(crate) fn open(tool_id: &str, alarm: &Arc<Alarm>, first_backoff: Duration) -> Arc<Self> {
        Arc::new(Self {
            id: alarm.accounts.fetch_add(1, Ordering::Relaxed),
            tool_id: tool_id.to_owned(),
            alarm: alarm.clone(),
            record: Mutex::new(Record::new(first_backoff)),
            stuck: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
        })
    }

    /// Begins a call, unless the handler is out of service. `max_stuck` is how many stuck threads a host bears.
    pub(crate) fn enter(self: &Arc<Self>, max_stuck: usize) -> Result<Pass, HostError> {
        let now = Instant::now();
        let is_crowded = self.stuck.load(Ordering::Relaxed) > 0 || self.alarm.stuck() >= max_stuck;
        let threads = if is_crowded { Threads::Stuck } else { Threads::Fine };
        match self.record().enter(now, threads) {
            Entry::Free => Ok(Pass { trial: None }),
            Entry::OnTrial => Ok(Pass { trial: Some(self.clone()) }),
            Entry::Refused(wait) => Err(refusal(wait)),
        }
    }

    /// What a caller is told while the handler is out of service.
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

    /// Counts a call, if no more than `most` are under way.
    pub(crate) fn count_call(&self, most: usize) -> bool {
        let add = |calls: usize| (calls < most).then_some(calls + 1);
        self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    pub(crate) fn uncount_call(&self) {
        self.calls.fetch_sub(1, Ordering::Relaxed);
    }

    /// A thread is stuck from now on.
    pub(crate) fn count_stuck(&self) {
        self.stuck.fetch_add(1, Ordering::Relaxed);
        self.alarm.stuck.fetch_add(1, Ordering::Relaxed);
    }

    /// A stuck thread has come back.
    pub(crate) fn uncount_stuck(&self) {
        self.stuck.fetch_sub(1, Ordering::Relaxed);
        self.alarm.stuck.fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes the handler out of service because of work that did not end, unless it is already.
    pub(crate) fn strike(&self, call: Option<StuckCall>) {
        let mut record = self.record();
        if !record.strike(Instant::now()) {
            return;
        }
        let quarantine = self.describe(&record);
        drop(record);
        self.alarm.quarantines.fetch_add(1, Ordering::Relaxed);
        self.alarm.tell(HostEvent::Quarantined { quarantine, call });
    }

    fn describe(&self, record: &Record) -> Quarantine {
        Quarantine {
            tool_id: self.tool_id.clone(),
            strikes: record.strikes(),
            stuck_threads: self.stuck.load(Ordering::Relaxed),
            retry_after_ms: milliseconds(record.wait(Instant::now())),
        }
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leave to run one call. Dropped without a word, a trial has decided nothing.
pub(crate) struct Pass {
    trial: Option<Arc<Account>>,
}

impl Pass {
    /// The call has ended by itself, well within its time.
    pub(crate) fn ended_in_time(mut self) {
        if let Some(account) = self.trial.take()
            && account.record().pass(Instant::now())
        {
            account.alarm.tell(HostEvent::Released { tool_id: account.tool_id.clone() });
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(account) = self.trial.take() {
            account.record().postpone(Instant::now());
        }
    }
}

fn refusal(wait: Duration) -> HostError {
    HostError::Quarantined { retry_after_ms: milliseconds(wait).max(1) }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
