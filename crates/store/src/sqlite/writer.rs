//! The one thread that writes.
//!
//! It takes what is waiting, applies each commit by itself inside one transaction, and ends the transaction with one
//! sync of the disk for all of them. Only then is anybody answered.

use std::iter;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use quarterdeck_contracts::{CommitError, StoreError};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::backup;
use super::health::Health;
use super::reader::ReadRequest;
use super::rows::EncodedCommit;
use super::transaction::Transaction;
use super::unsettled::Mark;

/// A group ends after so many jobs, so that a steady stream cannot keep the first of them waiting.
const GROUP: usize = 1024;

/// What the writer is asked to do.
pub(super) enum Job {
    /// To be on the disk when it is answered.
    Commit {
        commit: EncodedCommit,
        room: OwnedSemaphorePermit,
        answer: oneshot::Sender<Result<(), CommitError>>,
    },
    /// To be on the disk soon.
    Queue {
        commit: EncodedCommit,
        room: OwnedSemaphorePermit,
        mark: Mark,
    },
    Read(ReadRequest),
    Sweep {
        now_ms: u64,
        limit: usize,
        answer: oneshot::Sender<Result<u64, StoreError>>,
    },
    Backup {
        to: PathBuf,
        answer: oneshot::Sender<Result<(), StoreError>>,
    },
    Close {
        answer: Closing,
    },
}

/// Whom to answer when the file is closed.
type Closing = oneshot::Sender<Result<(), StoreError>>;

/// Answers somebody, once it is known whether the group is on the disk.
type Answer = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

pub(super) struct Writer {
    transaction: Transaction,
    health: Arc<Health>,
    /// How long queued commits may wait for company.
    delay: Duration,
    /// When the queued commits of the open group must be on the disk.
    due: Option<Instant>,
    waiting: Vec<Answer>,
    marks: Vec<Mark>,
}

impl Writer {
    pub(super) fn new(transaction: Transaction, health: Arc<Health>, delay: Duration) -> Self {
        Self { transaction, health, delay, due: None, waiting: Vec::new(), marks: Vec::new() }
    }

    /// Works until it is told to close, or until nobody is left to tell it anything.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        let closing = loop {
            if let ControlFlow::Break(closing) = self.work(jobs) {
                break closing;
            }
        };
        let ended = self.end_group();
        let result = ended.and(self.transaction.checkpoint());
        // The file is closed before anybody hears that it is.
        drop(self);
        if let Some(answer) = closing {
            drop(answer.send(result));
        }
    }

    /// Takes what is waiting, and ends the group when somebody needs it on the disk.
    fn work(&mut self, jobs: &Receiver<Job>) -> ControlFlow<Option<Closing>> {
        match self.next(jobs) {
            Ok(first) => {
                for job in iter::once(first).chain(jobs.try_iter().take(GROUP - 1)) {
                    self.take(job)?;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return ControlFlow::Break(None),
        }
        let due = self.due.is_some_and(|due| due <= Instant::now());
        if due || !self.waiting.is_empty() || self.transaction.is_lost() {
            drop(self.end_group());
        }
        ControlFlow::Continue(())
    }

    fn next(&self, jobs: &Receiver<Job>) -> Result<Job, RecvTimeoutError> {
        match self.due {
            Some(due) => jobs.recv_timeout(due.saturating_duration_since(Instant::now())),
            None => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    fn take(&mut self, job: Job) -> ControlFlow<Option<Closing>> {
        match job {
            Job::Commit { commit, room, answer } => {
                self.leave_lost_queue();
                let applied = self.transaction.apply(&commit);
                drop((commit, room));
                self.answer_later(move |ended| {
                    drop(answer.send(applied.and_then(|()| ended.map_err(CommitError::from))));
                });
            }
            Job::Queue { commit, room, mark } => {
                self.apply_queued(&commit);
                drop((commit, room));
                self.marks.push(mark);
                self.due.get_or_insert_with(|| Instant::now() + self.delay);
            }
            Job::Read(request) => self.read(request),
            Job::Sweep { now_ms, limit, answer } => {
                self.leave_lost_queue();
                let swept = self.transaction.sweep(now_ms, limit);
                self.answer_later(move |ended| {
                    drop(answer.send(swept.and_then(|rows| ended.map(|()| rows))))
                });
            }
            Job::Backup { to, answer } => match self.end_group() {
                Ok(()) => backup::start(self.health.clone(), to, answer),
                Err(error) => drop(answer.send(Err(error))),
            },
            Job::Close { answer } => return ControlFlow::Break(Some(answer)),
        }
        ControlFlow::Continue(())
    }

    /// A group that failed before anybody waited for it takes only queued commits with it: the first one who waits
    /// begins another.
    fn leave_lost_queue(&mut self) {
        if self.transaction.is_lost() && self.waiting.is_empty() {
            drop(self.end_group());
        }
    }

    fn apply_queued(&mut self, commit: &EncodedCommit) {
        match self.transaction.apply(commit) {
            Ok(()) | Err(CommitError::Conflict { .. }) => {}
            Err(CommitError::Store(error)) => tracing::error!(%error, "a queued commit was lost"),
        }
    }

    /// A reader must not learn what a crash could still undo after somebody acted on it: with commits waiting for the
    /// disk, it waits with them. What was only queued may be lost by contract, and is shown at once.
    fn read(&mut self, request: ReadRequest) {
        let rows = self.transaction.read(&request.wanted);
        if self.waiting.is_empty() {
            drop(request.answer.send(rows));
        } else {
            self.answer_later(move |ended| drop(request.answer.send(ended.and(rows))));
        }
    }

    fn answer_later(&mut self, answer: impl FnOnce(Result<(), StoreError>) + Send + 'static) {
        self.waiting.push(Box::new(answer));
    }

    /// Puts the group on the disk and answers everybody who waits for it.
    fn end_group(&mut self) -> Result<(), StoreError> {
        let ended = self.transaction.end();
        if let Err(error) = &ended {
            tracing::error!(%error, "a group of commits was lost");
        }
        self.due = None;
        self.marks.clear();
        for answer in self.waiting.drain(..) {
            answer(ended.clone());
        }
        ended
    }
}
