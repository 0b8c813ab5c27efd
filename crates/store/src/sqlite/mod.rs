//! A store in one SQLite file, for one machine.
//!
//! One thread writes, one reads. Commits that wait at the same time share one sync of the disk. No async runtime needs
//! to be running: futures are woken from the two threads.

mod backup;
mod check;
mod checksum;
mod fault;
mod file;
mod health;
mod open;
mod reader;
mod rows;
mod schema;
mod snapshot;
mod transaction;
mod writer;

use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{Change, Changes, Commit, CommitError, Row, Scan, Store, StoreError, Table};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use self::check::{Background, CHECK_TIMEOUT, report};
use self::health::Health;
pub use self::open::OpenError;
use self::open::{DEFAULT_BUSY_TIMEOUT, OpenedWriter, engine_error, open_reader, open_writer};
use self::reader::ReadRequest;
use self::rows::{EncodedCommit, ReadQuery, StoredRow};
pub use self::schema::VERSION as SQLITE_FORMAT;
pub use self::snapshot::{SqliteSnapshot, vacuum};
use self::transaction::Transaction;
use self::writer::{Job, Writer};
use crate::changes::LocalChanges;
use crate::limits::check_limits;
use crate::queued_rows::QueuedRows;

/// The queue's memory is counted in permits of this size.
const BYTES_PER_PERMIT: usize = 256;

/// Rows swept in one transaction, so that other jobs get their turn in between.
const SWEEP_BATCH_ROWS: usize = 1000;

#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SqliteOptions {
    /// Memory that commits waiting for the writer may hold, roughly.
    pub queue_bytes: usize,
    /// How long a queued commit may wait for others before it is written.
    pub queue_delay: Duration,
    /// How long to wait for another process that writes to the same file.
    pub busy_timeout: Duration,
    /// How long opening waits until the file is known to be whole. A larger file is checked while it is used, and
    /// damage that is found then stops every further write.
    pub check_timeout: Duration,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            queue_bytes: 32 << 20,
            queue_delay: Duration::from_millis(50),
            busy_timeout: DEFAULT_BUSY_TIMEOUT,
            check_timeout: CHECK_TIMEOUT,
        }
    }
}

/// Rows in one file that survives a crash.
///
/// Dropping it writes what is queued and waits for the disk; [`Store::close`] does so without blocking.
///
/// A commit is sent to the writer when [`Store::commit`] is called, not when its future is first polled. When the queue
/// is full, it waits inside the future, and one that is dropped there is not applied at all.
pub struct SqliteStore {
    channels: Arc<Channels>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    check: Mutex<Option<Background>>,
    changes: LocalChanges,
}

struct Channels {
    jobs: Sender<Job>,
    reads: Sender<Option<ReadRequest>>,
    semaphore: Arc<Semaphore>,
    max_permits: u32,
    queued_rows: Arc<QueuedRows>,
}

impl SqliteStore {
    /// Opens a file, or creates it for its owner alone.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_with(path, SqliteOptions::default())
    }

    pub fn open_with(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, OpenError> {
        let path = std::path::absolute(path.as_ref())
            .map_err(|source| OpenError::Io { path: path.as_ref().to_owned(), source })?;
        let OpenedWriter { connection: writing, check, found } = open_writer(&path, &options)?;
        let reading =
            open_reader(&path, options.busy_timeout).map_err(|source| engine_error(source, &path))?;
        let health = Arc::new(Health::new(&path));
        report(&found, &health);
        let check = check.map(|check| check.continue_in_background(Arc::clone(&health))).transpose();
        let check = check.map_err(|source| OpenError::Io { path: path.clone(), source })?;

        let (jobs, incoming) = channel();
        let (reads, requests) = channel();
        let transaction = Transaction::new(writing, Arc::clone(&health));
        let writer = Writer::new(transaction, Arc::clone(&health), options.queue_delay);
        let threads = vec![
            start("store-writer", &path, move || writer.run(&incoming))?,
            start("store-reader", &path, move || reader::run(&reading, &health, &requests))?,
        ];
        let max_permits =
            u32::try_from(options.queue_bytes / BYTES_PER_PERMIT).unwrap_or(u32::MAX).clamp(1, 1 << 28);
        let semaphore = Arc::new(Semaphore::new(max_permits as usize));
        let queued_rows = Arc::new(QueuedRows::new());
        let channels = Channels { jobs, reads, semaphore, max_permits, queued_rows };
        Ok(Self {
            channels: Arc::new(channels),
            threads: Mutex::new(threads),
            check: Mutex::new(check),
            changes: LocalChanges::default(),
        })
    }

    /// Stops a running check, so that the file can be closed. It stops within a few pages.
    fn stop_check(&self) {
        let check = self.check.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(check) = check {
            check.stop();
        }
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.stop_check();
        drop(self.channels.close());
        for thread in self.threads.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // Waking a waiter may drop the store's last owner on one of its own threads, which cannot wait for itself.
            if thread.thread().id() != thread::current().id() {
                // A panic has been reported by its own thread.
                drop(thread.join());
            }
        }
    }
}

fn start(name: &str, path: &Path, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, OpenError> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|source| OpenError::Io { path: path.to_owned(), source })
}

impl Channels {
    /// The reader goes first, so that the writer is the last to let go of the file.
    fn close(&self) -> oneshot::Receiver<Result<(), StoreError>> {
        self.semaphore.close();
        drop(self.reads.send(None));
        let (answer, closed) = oneshot::channel();
        drop(self.jobs.send(Job::Close { answer }));
        closed
    }

    /// A commit that is larger than the whole queue waits until it has the queue for itself.
    fn permits_for(&self, commit: &EncodedCommit) -> u32 {
        u32::try_from(commit.size().div_ceil(BYTES_PER_PERMIT)).unwrap_or(u32::MAX).min(self.max_permits)
    }

    fn try_reserve(&self, commit: &EncodedCommit) -> Result<OwnedSemaphorePermit, StoreError> {
        Arc::clone(&self.semaphore).try_acquire_many_owned(self.permits_for(commit)).map_err(|error| {
            match error {
                tokio::sync::TryAcquireError::NoPermits => StoreError::QueueFull,
                tokio::sync::TryAcquireError::Closed => StoreError::Closed,
            }
        })
    }

    async fn reserve(&self, commit: &EncodedCommit) -> Result<OwnedSemaphorePermit, StoreError> {
        let permit = Arc::clone(&self.semaphore).acquire_many_owned(self.permits_for(commit));
        permit.await.map_err(|_| StoreError::Closed)
    }

    fn send_commit(
        &self,
        commit: EncodedCommit,
        permit: OwnedSemaphorePermit,
    ) -> oneshot::Receiver<Result<u64, CommitError>> {
        let (answer, result) = oneshot::channel();
        // When the writer has stopped, the answer is dropped, and the receiver fails.
        drop(self.jobs.send(Job::Commit { commit, permit, answer }));
        result
    }

    /// To the reader, unless the rows have queued changes, which only the writer sees.
    fn send_read(&self, query: ReadQuery) -> oneshot::Receiver<Result<Vec<StoredRow>, StoreError>> {
        let (answer, rows) = oneshot::channel();
        let queued_rows = match &query {
            ReadQuery::Get { table, key } => self.queued_rows.has_row(*table, key),
            ReadQuery::Scan { table, .. } => self.queued_rows.has_table(*table),
        };
        let request = ReadRequest { query, answer };
        if queued_rows {
            drop(self.jobs.send(Job::Read(request)));
        } else {
            drop(self.reads.send(Some(request)));
        }
        rows
    }

    async fn sweep_some(&self, now_ms: u64) -> Result<u64, StoreError> {
        let (answer, swept) = oneshot::channel();
        drop(self.jobs.send(Job::Sweep { now_ms, limit: SWEEP_BATCH_ROWS, answer }));
        swept.await.unwrap_or(Err(StoreError::Closed))
    }
}

impl Store for SqliteStore {
    fn get(&self, table: Table, key: &str) -> BoxFuture<Result<Option<Row>, StoreError>> {
        let rows = self.channels.send_read(ReadQuery::Get { table, key: key.to_owned() });
        Box::pin(async move {
            let row = rows.await.unwrap_or(Err(StoreError::Closed))?.pop();
            row.map(|row| row.decode(table).map(|(_, row)| row)).transpose()
        })
    }

    fn scan(&self, table: Table, scan: Scan) -> BoxFuture<Result<Vec<(String, Row)>, StoreError>> {
        let rows = self.channels.send_read(ReadQuery::Scan { table, scan });
        Box::pin(async move {
            let rows = rows.await.unwrap_or(Err(StoreError::Closed))?;
            rows.into_iter().map(|row| row.decode(table)).collect()
        })
    }

    fn commit(&self, commit: Commit) -> BoxFuture<Result<u64, CommitError>> {
        if let Err(error) = check_limits(&commit) {
            return Box::pin(std::future::ready(Err(error.into())));
        }
        let commit = EncodedCommit::new(commit);
        let channels = Arc::clone(&self.channels);
        match channels.try_reserve(&commit) {
            Ok(permit) => {
                let result = channels.send_commit(commit, permit);
                Box::pin(async move { result.await.unwrap_or(Err(StoreError::Closed.into())) })
            }
            Err(_) => Box::pin(async move {
                let permit = channels.reserve(&commit).await?;
                channels.send_commit(commit, permit).await.unwrap_or(Err(StoreError::Closed.into()))
            }),
        }
    }

    fn queue(&self, commit: Commit) -> Result<(), StoreError> {
        check_limits(&commit)?;
        let commit = EncodedCommit::new(commit);
        let permit = self.channels.try_reserve(&commit)?;
        // Marked before it is sent: from here on, readers of these rows ask the writer.
        let mark = self.channels.queued_rows.mark(commit.rows());
        self.channels.jobs.send(Job::Queue { commit, permit, mark }).map_err(|_| StoreError::Closed)
    }

    /// The writer works in order, and answers a commit after what was queued before it.
    fn flush(&self) -> BoxFuture<Result<(), StoreError>> {
        let flushed = self.commit(Commit::default());
        Box::pin(async move { flushed.await.map(drop).map_err(CommitError::into_store_error) })
    }

    fn backup(&self, to: &Path) -> BoxFuture<Result<(), StoreError>> {
        let (answer, copied) = oneshot::channel();
        drop(self.channels.jobs.send(Job::Backup { to: to.to_owned(), answer }));
        Box::pin(async move { copied.await.unwrap_or(Err(StoreError::Closed)) })
    }

    fn notify(&self, change: Change) {
        self.changes.notify(change);
    }

    fn watch(&self) -> Changes {
        self.changes.watch()
    }

    fn sweep(&self, now_ms: u64) -> BoxFuture<Result<u64, StoreError>> {
        let channels = Arc::clone(&self.channels);
        Box::pin(async move {
            let mut total = 0;
            loop {
                let swept = channels.sweep_some(now_ms).await?;
                total += swept;
                if swept < SWEEP_BATCH_ROWS as u64 {
                    return Ok(total);
                }
            }
        })
    }

    fn close(&self) -> BoxFuture<Result<(), StoreError>> {
        self.stop_check();
        let closed = self.channels.close();
        // A writer that has stopped before has closed the file.
        Box::pin(async move { closed.await.unwrap_or(Ok(())) })
    }
}
