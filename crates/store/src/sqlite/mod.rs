//! A store in one SQLite file, for one machine.
//!
//! One thread writes, one reads. Commits that wait at the same time share one sync of the disk. No async runtime needs
//! to be running: futures are woken from the two threads.

mod backup;
mod check;
mod fault;
mod file;
mod health;
mod open;
mod reader;
mod rows;
mod schema;
mod sum;
mod transaction;
mod unsettled;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{Commit, CommitError, Row, Scan, Store, StoreError, Table};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use self::check::{Background, CHECK_TIMEOUT, tell};
use self::health::Health;
pub use self::open::OpenError;
use self::open::{BUSY, Opened, engine_error, open_reader, open_writer};
use self::reader::ReadRequest;
use self::rows::{EncodedCommit, StoredRow, Wanted};
use self::transaction::Transaction;
use self::unsettled::Unsettled;
use self::writer::{Job, Writer};
use crate::limits::check_depth;

/// Room in the queue is counted in pieces of so many bytes.
const PIECE: usize = 256;

/// At most so many rows are swept in one go, so that others get their turn in between.
const SWEEP: usize = 1000;

/// How a store behaves under load.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SqliteOptions {
    /// How much memory commits may hold that wait for the writer, about, in bytes.
    pub queue_bytes: usize,
    /// How long a queued commit may wait for others before it is written.
    pub queue_delay: Duration,
    /// How long to wait for another process that writes to the same file.
    pub busy: Duration,
    /// How long opening waits until the file is known to be whole. A larger file is checked while it is used, and
    /// damage that is found then stops every further write.
    pub check_timeout: Duration,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            queue_bytes: 32 << 20,
            queue_delay: Duration::from_millis(50),
            busy: BUSY,
            check_timeout: CHECK_TIMEOUT,
        }
    }
}

/// Rows in one file that survives a crash.
///
/// Dropping it writes what is queued and waits for the disk; [`SqliteStore::close`] does so without blocking.
///
/// A commit is sent to the writer when [`Store::commit`] is called, not when its future is first polled; when the queue
/// is full, it waits for room inside the future, and one that is dropped there is not applied at all.
pub struct SqliteStore {
    doors: Arc<Doors>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    check: Mutex<Option<Background>>,
}

/// The ways in to the threads.
struct Doors {
    jobs: Sender<Job>,
    reads: Sender<Option<ReadRequest>>,
    room: Arc<Semaphore>,
    pieces: u32,
    unsettled: Arc<Unsettled>,
}

impl SqliteStore {
    /// Opens a file, or makes it, for its owner alone.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_with(path, SqliteOptions::default())
    }

    /// The same, with limits of one's own.
    pub fn open_with(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, OpenError> {
        let path = std::path::absolute(path.as_ref())
            .map_err(|source| OpenError::Io { path: path.as_ref().to_owned(), source })?;
        let Opened { connection: writing, check, found } = open_writer(&path, &options)?;
        let reading = open_reader(&path, options.busy).map_err(|source| engine_error(source, &path))?;
        let health = Arc::new(Health::new(&path));
        tell(&found, &health);
        let check = check.map(|check| check.go_on(Arc::clone(&health))).transpose();
        let check = check.map_err(|source| OpenError::Io { path: path.clone(), source })?;

        let (jobs, incoming) = channel();
        let (reads, requests) = channel();
        let transaction = Transaction::new(writing, Arc::clone(&health));
        let writer = Writer::new(transaction, Arc::clone(&health), options.queue_delay);
        let threads = vec![
            start("store-writer", &path, move || writer.run(&incoming))?,
            start("store-reader", &path, move || reader::run(&reading, &health, &requests))?,
        ];
        let pieces = u32::try_from(options.queue_bytes / PIECE).unwrap_or(u32::MAX).clamp(1, 1 << 28);
        let room = Arc::new(Semaphore::new(pieces as usize));
        let doors = Doors { jobs, reads, room, pieces, unsettled: Arc::new(Unsettled::new()) };
        Ok(Self { doors: Arc::new(doors), threads: Mutex::new(threads), check: Mutex::new(check) })
    }

    /// Writes what is queued, tidies the file and lets go of it. Whatever is asked afterwards is answered with
    /// [`StoreError::Closed`]. An error says that queued commits were lost.
    pub fn close(&self) -> BoxFuture<Result<(), StoreError>> {
        self.stop_check();
        let closed = self.doors.shut();
        Box::pin(async move {
            match closed.await {
                Ok(result) => result,
                Err(_) => Ok(()),
            }
        })
    }
}

impl SqliteStore {
    /// A check that is still under way must not be what holds the file last. It ends within a few pages.
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
        drop(self.doors.shut());
        for thread in self.threads.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // Waking a waiter may drop the store's last owner on one of its own threads, which cannot wait for itself.
            if thread.thread().id() != thread::current().id() {
                // A thread that panicked has said so on its own.
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

impl Doors {
    /// The reader goes first, so that the writer is the last to let go of the file.
    fn shut(&self) -> oneshot::Receiver<Result<(), StoreError>> {
        self.room.close();
        drop(self.reads.send(None));
        let (answer, closed) = oneshot::channel();
        drop(self.jobs.send(Job::Close { answer }));
        closed
    }

    /// A commit that is larger than the whole queue waits until it has the queue for itself.
    fn pieces_of(&self, commit: &EncodedCommit) -> u32 {
        u32::try_from(commit.size().div_ceil(PIECE)).unwrap_or(u32::MAX).min(self.pieces)
    }

    fn try_room(&self, commit: &EncodedCommit) -> Result<OwnedSemaphorePermit, StoreError> {
        Arc::clone(&self.room).try_acquire_many_owned(self.pieces_of(commit)).map_err(|error| match error {
            tokio::sync::TryAcquireError::NoPermits => StoreError::QueueFull,
            tokio::sync::TryAcquireError::Closed => StoreError::Closed,
        })
    }

    async fn wait_for_room(&self, commit: &EncodedCommit) -> Result<OwnedSemaphorePermit, StoreError> {
        let room = Arc::clone(&self.room).acquire_many_owned(self.pieces_of(commit));
        room.await.map_err(|_| StoreError::Closed)
    }

    fn send_commit(
        &self,
        commit: EncodedCommit,
        room: OwnedSemaphorePermit,
    ) -> oneshot::Receiver<Result<(), CommitError>> {
        let (answer, result) = oneshot::channel();
        // When nobody takes it, the answer is dropped, and the receiver says so.
        drop(self.jobs.send(Job::Commit { commit, room, answer }));
        result
    }

    /// To the reader, unless only the writer knows the rows as they are.
    fn send_read(&self, wanted: Wanted) -> oneshot::Receiver<Result<Vec<StoredRow>, StoreError>> {
        let (answer, rows) = oneshot::channel();
        let unsettled = self.unsettled.touches(&wanted);
        let request = ReadRequest { wanted, answer };
        if unsettled {
            drop(self.jobs.send(Job::Read(request)));
        } else {
            drop(self.reads.send(Some(request)));
        }
        rows
    }

    async fn sweep_some(&self, now_ms: u64) -> Result<u64, StoreError> {
        let (answer, swept) = oneshot::channel();
        drop(self.jobs.send(Job::Sweep { now_ms, limit: SWEEP, answer }));
        swept.await.unwrap_or(Err(StoreError::Closed))
    }
}

impl Store for SqliteStore {
    fn get(&self, table: Table, key: &str) -> BoxFuture<Result<Option<Row>, StoreError>> {
        let rows = self.doors.send_read(Wanted::One { table, key: key.to_owned() });
        Box::pin(async move {
            let row = rows.await.unwrap_or(Err(StoreError::Closed))?.pop();
            row.map(|row| row.decode(table).map(|(_, row)| row)).transpose()
        })
    }

    fn scan(&self, table: Table, scan: Scan) -> BoxFuture<Result<Vec<(String, Row)>, StoreError>> {
        let rows = self.doors.send_read(Wanted::Some { table, scan });
        Box::pin(async move {
            let rows = rows.await.unwrap_or(Err(StoreError::Closed))?;
            rows.into_iter().map(|row| row.decode(table)).collect()
        })
    }

    fn commit(&self, commit: Commit) -> BoxFuture<Result<(), CommitError>> {
        if let Err(error) = check_depth(&commit) {
            return Box::pin(std::future::ready(Err(error.into())));
        }
        let commit = EncodedCommit::new(commit);
        let doors = Arc::clone(&self.doors);
        match doors.try_room(&commit) {
            Ok(room) => {
                let result = doors.send_commit(commit, room);
                Box::pin(async move { result.await.unwrap_or(Err(StoreError::Closed.into())) })
            }
            Err(_) => Box::pin(async move {
                let room = doors.wait_for_room(&commit).await?;
                doors.send_commit(commit, room).await.unwrap_or(Err(StoreError::Closed.into()))
            }),
        }
    }

    fn queue(&self, commit: Commit) -> Result<(), StoreError> {
        check_depth(&commit)?;
        let commit = EncodedCommit::new(commit);
        let room = self.doors.try_room(&commit)?;
        // Marked before it is sent: from here on, readers of these rows ask the writer.
        let mark = self.doors.unsettled.mark(commit.rows());
        self.doors.jobs.send(Job::Queue { commit, room, mark }).map_err(|_| StoreError::Closed)
    }

    fn sweep(&self, now_ms: u64) -> BoxFuture<Result<u64, StoreError>> {
        let doors = Arc::clone(&self.doors);
        Box::pin(async move {
            let mut total = 0;
            loop {
                let swept = doors.sweep_some(now_ms).await?;
                total += swept;
                if swept < SWEEP as u64 {
                    return Ok(total);
                }
            }
        })
    }

    fn backup(&self, to: &Path) -> BoxFuture<Result<(), StoreError>> {
        let (answer, copied) = oneshot::channel();
        let to: PathBuf = to.to_owned();
        drop(self.doors.jobs.send(Job::Backup { to, answer }));
        Box::pin(async move { copied.await.unwrap_or(Err(StoreError::Closed)) })
    }
}
