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
use crate::queued_rows::QueuedMark;

/// Bounds a group, so that a steady stream cannot keep its first commit waiting.
const MAX_GROUP_JOBS: usize = 1024;

pub(super) enum Job {
    /// On the disk when it is answered.
    Commit {
        commit: EncodedCommit,
        permit: OwnedSemaphorePermit,
        answer: oneshot::Sender<Result<u64, CommitError>>,
    },
    /// On the disk within the delay.
    Queue {
        commit: EncodedCommit,
        permit: OwnedSemaphorePermit,
        mark: QueuedMark,
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

/// Answered when the file is closed.
type Closing = oneshot::Sender<Result<(), StoreError>>;

/// Called when the group is on the disk, or lost.
type Answer = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

pub(super) struct Writer {
    transaction: Transaction,
    health: Arc<Health>,
    /// How long queued commits may wait for more.
    delay: Duration,
    /// When the queued commits of the open group must be on the disk.
    due: Option<Instant>,
    pending_answers: Vec<Answer>,
    marks: Vec<QueuedMark>,
}

impl Writer {
    pub(super) fn new(transaction: Transaction, health: Arc<Health>, delay: Duration) -> Self {
        Self { transaction, health, delay, due: None, pending_answers: Vec::new(), marks: Vec::new() }
    }

    /// Runs until it is told to close, or all senders are gone.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        let closing = loop {
            if let ControlFlow::Break(closing) = self.run_group(jobs) {
                break closing;
            }
        };
        let ended = self.end_group();
        let result = ended.and(self.transaction.checkpoint());
        // The file is closed before the caller is told.
        drop(self);
        if let Some(answer) = closing {
            drop(answer.send(result));
        }
    }

    /// Handles the waiting jobs, and ends the group when a commit waits for the disk.
    fn run_group(&mut self, jobs: &Receiver<Job>) -> ControlFlow<Option<Closing>> {
        match self.next(jobs) {
            Ok(first) => {
                for job in iter::once(first).chain(jobs.try_iter().take(MAX_GROUP_JOBS - 1)) {
                    self.handle(job)?;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return ControlFlow::Break(None),
        }
        let due = self.due.is_some_and(|due| due <= Instant::now());
        if due || !self.pending_answers.is_empty() || self.transaction.is_lost() {
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

    fn handle(&mut self, job: Job) -> ControlFlow<Option<Closing>> {
        match job {
            Job::Commit { commit, permit, answer } => {
                self.discard_lost_group();
                let applied = self.transaction.apply(&commit);
                drop((commit, permit));
                self.answer_later(move |ended| {
                    drop(answer.send(
                        applied.and_then(|version| ended.map(|()| version).map_err(CommitError::from)),
                    ));
                });
            }
            Job::Queue { commit, permit, mark } => {
                self.apply_queued(&commit);
                drop((commit, permit));
                self.marks.push(mark);
                self.due.get_or_insert_with(|| Instant::now() + self.delay);
            }
            Job::Read(request) => self.read(request),
            Job::Sweep { now_ms, limit, answer } => {
                self.discard_lost_group();
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

    /// A group that failed with only queued commits in it must not fail a commit that comes later.
    fn discard_lost_group(&mut self) {
        if self.transaction.is_lost() && self.pending_answers.is_empty() {
            drop(self.end_group());
        }
    }

    fn apply_queued(&mut self, commit: &EncodedCommit) {
        match self.transaction.apply(commit) {
            Ok(_) | Err(CommitError::Conflict { .. } | CommitError::Exhausted { .. }) => {}
            Err(error) => tracing::error!(%error, "queued commit lost"),
        }
    }

    /// A reader must not act on what a crash could still undo: with commits waiting for the disk, it waits with them.
    /// What was only queued may be lost by contract, and is shown at once.
    fn read(&mut self, request: ReadRequest) {
        let rows = self.transaction.read(&request.query);
        if self.pending_answers.is_empty() {
            drop(request.answer.send(rows));
        } else {
            self.answer_later(move |ended| drop(request.answer.send(ended.and(rows))));
        }
    }

    fn answer_later(&mut self, answer: impl FnOnce(Result<(), StoreError>) + Send + 'static) {
        self.pending_answers.push(Box::new(answer));
    }

    /// Commits the group and answers all who wait for it.
    fn end_group(&mut self) -> Result<(), StoreError> {
        let ended = self.transaction.end();
        if let Err(error) = &ended {
            tracing::error!(%error, "commit group lost");
        }
        self.due = None;
        self.marks.clear();
        for answer in self.pending_answers.drain(..) {
            answer(ended.clone());
        }
        ended
    }
}
