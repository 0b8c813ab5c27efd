//! Commits that no caller waits for: applied in their order, several at a time, within a moment.

mod group;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quarterdeck_contracts::{CommitError, StoreError, Table};
use quarterdeck_postgres::Database;
use quarterdeck_time_limit::within;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, TryAcquireError, watch};
use tokio::time::timeout;

use self::group::Group;
use super::commit::{CommitCounters, Durability, EncodedCommit, PreparedCommit};
use super::retry::RETRY_TIMEOUT;
use crate::queued_rows::{QueuedMark, QueuedRows};

/// How long a queued commit may wait for others.
const QUEUE_DELAY: Duration = Duration::from_millis(50);
/// Memory that queued commits may hold, roughly, counted in permits of a few bytes.
const QUEUE_BYTES: usize = 32 << 20;
const BYTES_PER_PERMIT: usize = 256;
const MAX_PERMITS: u32 = (QUEUE_BYTES / BYTES_PER_PERMIT) as u32;

pub(super) struct Queue {
    /// Held while a commit gets its number, so that numbers and order are the same.
    sending: Mutex<Sending>,
    /// The number of the last commit that is applied or dropped.
    applied: watch::Sender<u64>,
    /// A reader or a commit waits.
    urgent: Notify,
    semaphore: Arc<Semaphore>,
    rows: Arc<QueuedRows>,
    counters: Arc<CommitCounters>,
    /// Commits that were lost since that was last told.
    lost: AtomicU64,
    is_closing: AtomicBool,
}

struct Sending {
    last: u64,
    /// `None` once the store is closed.
    sender: Option<UnboundedSender<QueuedCommit>>,
}

pub(super) struct QueuedCommit {
    number: u64,
    commit: EncodedCommit,
    _permit: OwnedSemaphorePermit,
    _mark: QueuedMark,
}

impl Queue {
    /// A queue, and what [`Queue::run`] takes from.
    pub(super) fn new(counters: Arc<CommitCounters>) -> (Arc<Self>, UnboundedReceiver<QueuedCommit>) {
        let (sender, receiver) = unbounded_channel();
        let queue = Self {
            sending: Mutex::new(Sending { last: 0, sender: Some(sender) }),
            applied: watch::Sender::new(0),
            urgent: Notify::new(),
            semaphore: Arc::new(Semaphore::new(MAX_PERMITS as usize)),
            rows: Arc::new(QueuedRows::new()),
            counters,
            lost: AtomicU64::new(0),
            is_closing: AtomicBool::new(false),
        };
        (Arc::new(queue), receiver)
    }

    pub(super) fn push(&self, commit: EncodedCommit) -> Result<(), StoreError> {
        let permits = u32::try_from(commit.size().div_ceil(BYTES_PER_PERMIT)).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.semaphore).try_acquire_many_owned(permits.min(MAX_PERMITS));
        let permit = permit.map_err(|error| match error {
            TryAcquireError::NoPermits => StoreError::QueueFull,
            TryAcquireError::Closed => StoreError::Closed,
        })?;
        let mut sending = self.sending();
        let number = sending.last + 1;
        let sender = sending.sender.as_ref().ok_or(StoreError::Closed)?;
        // Marked before it is sent: from here on, readers of these rows wait.
        let mark = self.rows.mark(commit.changed_rows());
        let queued = QueuedCommit { number, commit, _permit: permit, _mark: mark };
        sender.send(queued).map_err(|_| StoreError::Closed)?;
        sending.last = number;
        Ok(())
    }

    /// The number of the last commit if a row has queued changes.
    pub(super) fn position_of_row(&self, table: Table, key: &str) -> Option<u64> {
        self.rows.has_row(table, key).then(|| self.position())
    }

    /// The number of the last commit if a table has queued changes.
    pub(super) fn position_of_table(&self, table: Table) -> Option<u64> {
        self.rows.has_table(table).then(|| self.position())
    }

    pub(super) fn position(&self) -> u64 {
        self.sending().last
    }

    /// Waits until a commit and all before it are applied or dropped.
    pub(super) async fn wait_for(&self, position: Option<u64>) -> Result<(), StoreError> {
        let Some(position) = position else { return Ok(()) };
        let mut applied = self.applied.subscribe();
        if *applied.borrow_and_update() >= position {
            return Ok(());
        }
        self.urgent.notify_one();
        match within(RETRY_TIMEOUT, applied.wait_for(|applied| *applied >= position)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(StoreError::Closed),
            Err(_) => Err(StoreError::Unavailable("queued changes could not be written yet".to_owned())),
        }
    }

    /// Waits for everything that was queued, and tells what was lost.
    pub(super) async fn flush(&self, position: u64) -> Result<(), StoreError> {
        self.wait_for(Some(position)).await?;
        match self.lost.swap(0, Ordering::AcqRel) {
            0 => Ok(()),
            lost => Err(StoreError::Failed(format!("{lost} queued commits were lost"))),
        }
    }

    /// Takes no more. [`Queue::run`] ends when what is there is written, or was tried once more.
    pub(super) fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
        self.semaphore.close();
        self.sending().sender = None;
        self.urgent.notify_one();
    }

    /// Applies what is queued until the queue is closed.
    pub(super) async fn run(
        self: Arc<Self>,
        database: Database,
        mut receiver: UnboundedReceiver<QueuedCommit>,
    ) {
        let mut next = None;
        loop {
            let first = match next.take() {
                Some(first) => first,
                None => match receiver.recv().await {
                    Some(first) => {
                        if !self.is_closing() {
                            drop(timeout(QUEUE_DELAY, self.urgent.notified()).await);
                        }
                        first
                    }
                    None => return,
                },
            };
            let mut group = Group::new(first);
            while let Ok(queued) = receiver.try_recv() {
                if let Err(queued) = group.add(queued) {
                    next = Some(queued);
                    break;
                }
            }
            let last = group.last();
            self.apply(&database, &group.commits()).await;
            // The rows are unmarked before it is told, so that a reader who was told does not wait again.
            drop(group);
            self.applied.send_replace(last);
        }
    }

    /// Together, or one after the other when one of them is refused.
    async fn apply(&self, database: &Database, commits: &[&EncodedCommit]) {
        let result = self.apply_one(database, commits).await;
        match result {
            Ok(_) => {}
            Err(CommitError::Conflict { .. } | CommitError::Exhausted { .. }) if commits.len() == 1 => {}
            Err(CommitError::Conflict { .. } | CommitError::Exhausted { .. }) => {
                for commit in commits {
                    Box::pin(self.apply(database, &[*commit])).await;
                }
            }
            Err(error) => {
                self.lost.fetch_add(commits.len() as u64, Ordering::AcqRel);
                tracing::error!(%error, commits = commits.len(), "queued commits were lost");
            }
        }
    }

    /// Goes on until the database is there again, because a queued commit keeps its place: what comes later waits.
    async fn apply_one(&self, database: &Database, commits: &[&EncodedCommit]) -> Result<u64, CommitError> {
        let mut prepared = PreparedCommit::new(commits, Durability::Visible)?;
        loop {
            match prepared.apply(database, &self.counters).await {
                Err(CommitError::Unknown(_) | CommitError::Store(StoreError::Unavailable(_)))
                    if !self.is_closing() =>
                {
                    tracing::warn!(commits = commits.len(), "queued commits wait for the database");
                }
                result => return result,
            }
        }
    }

    fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    fn sending(&self) -> MutexGuard<'_, Sending> {
        self.sending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
