//! A store in PostgreSQL, for several nodes.
//!
//! A commit is one call of a function in the server (`steps/1.sql`) that checks, locks in one order and writes. It carries an
//! id, so that one whose answer was lost is sent again and is applied once. Everything runs on threads of the store's own:
//! its futures can be awaited anywhere, and what was begun goes on when they are dropped.

#[cfg(feature = "sqlite")]
mod backup;
mod changes;
mod commit;
mod queue;
mod read;
mod retry;
mod schema;
mod snapshot;
mod tables;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{
    Change, Changes, Commit, CommitError, PoolUse, Row, Scan, Store, StoreError, StoreHealth, Table,
};
use quarterdeck_postgres::Database;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use self::changes::SharedChanges;
use self::commit::{CommitCounters, Durability, EncodedCommit, PreparedCommit};
use self::queue::Queue;
pub use self::schema::{OpenError, SchemaState, migrate, schema_state};
pub use self::snapshot::{PostgresSnapshot, vacuum};
use crate::limits::check_limits;

/// Calls that wait for the database at a time; more are refused.
const MAX_CALLS: u32 = 4_096;
/// How long closing waits for calls and queued commits: as long as they try.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(15);
/// They only pass messages on: the work is the server's.
const THREADS: usize = 2;

/// Rows in a database that other nodes may use at the same time.
///
/// Dropping it writes what is queued and waits for it; [`Store::close`] does so without blocking.
pub struct PostgresStore {
    engine: Arc<Engine>,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

struct Engine {
    database: Database,
    handle: Handle,
    queue: Arc<Queue>,
    changes: Arc<SharedChanges>,
    calls: Arc<Semaphore>,
    counters: Arc<CommitCounters>,
    /// The schema that was found when it was opened.
    schema: i32,
    is_closed: AtomicBool,
}

impl PostgresStore {
    /// Opens a database, and makes or updates what is ours in it. Blocks this thread until that is done.
    pub fn open(database: Database) -> Result<Self, OpenError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("store-postgres")
            .enable_all()
            .build()
            .map_err(OpenError::Threads)?;
        let (answer, migrated) = mpsc::channel();
        let migrating = database.clone();
        runtime.spawn(async move { drop(answer.send(migrate(&migrating).await)) });
        let migrated = migrated.recv().unwrap_or_else(|_| {
            Err(OpenError::Threads(std::io::Error::other("the store's runtime ended while it was opened")))
        });
        let schema = match migrated {
            Ok(schema) => schema,
            Err(error) => {
                runtime.shutdown_background();
                return Err(error);
            }
        };
        let counters = Arc::new(CommitCounters::default());
        let (queue, queued) = Queue::new(Arc::clone(&counters));
        runtime.spawn(Arc::clone(&queue).run(database.clone(), queued));
        let changes = SharedChanges::start(runtime.handle(), &database);
        let handle = runtime.handle().clone();
        let calls = Arc::new(Semaphore::new(MAX_CALLS as usize));
        let engine = Engine {
            database,
            handle,
            queue,
            changes,
            calls,
            counters,
            schema,
            is_closed: AtomicBool::new(false),
        };
        Ok(Self { engine: Arc::new(engine), runtime: Some(runtime) })
    }

    /// The database, for others who keep their own tables in it.
    pub fn database(&self) -> &Database {
        &self.engine.database
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        let engine = Arc::clone(&self.engine);
        let (done, closed) = mpsc::channel();
        self.engine.handle.spawn(async move {
            drop(engine.close().await);
            let _ = done.send(());
        });
        let _ = closed.recv_timeout(CLOSE_TIMEOUT * 2);
        if let Some(runtime) = self.runtime.take() {
            // Waiting for its threads is not allowed inside another runtime; nothing is left for them to do.
            runtime.shutdown_background();
        }
    }
}

impl Engine {
    /// Runs a call on the store's own threads. It goes on when its future is dropped.
    fn run<T, E, F>(&self, work: F) -> BoxFuture<Result<T, E>>
    where
        T: Send + 'static,
        E: From<StoreError> + From<Interrupted> + Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let permit = match self.permit() {
            Ok(permit) => permit,
            Err(error) => return Box::pin(std::future::ready(Err(error.into()))),
        };
        let task = self.handle.spawn(async move {
            let result = work.await;
            drop(permit);
            result
        });
        // Its task ends without an answer only when the store is dropped and waited long enough.
        Box::pin(async move { task.await.unwrap_or_else(|_| Err(Interrupted.into())) })
    }

    fn permit(&self) -> Result<OwnedSemaphorePermit, StoreError> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(StoreError::Closed);
        }
        Arc::clone(&self.calls)
            .try_acquire_owned()
            .map_err(|_| StoreError::Unavailable(format!("{MAX_CALLS} calls are waiting for the database")))
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.is_closed.store(true, Ordering::Release);
        let position = self.queue.position();
        self.queue.close();
        let flushed = timeout(CLOSE_TIMEOUT, self.queue.flush(position)).await;
        // Every call holds one permit.
        drop(timeout(CLOSE_TIMEOUT, self.calls.acquire_many(MAX_CALLS)).await);
        self.changes.close().await;
        flushed.unwrap_or_else(|_| {
            Err(StoreError::Unavailable("queued commits could not be written before closing".to_owned()))
        })
    }
}

/// A call whose task ended without an answer.
struct Interrupted;

impl From<Interrupted> for StoreError {
    fn from(_: Interrupted) -> Self {
        Self::Closed
    }
}

impl From<Interrupted> for CommitError {
    fn from(_: Interrupted) -> Self {
        Self::Unknown("the store was dropped while the commit was under way".to_owned())
    }
}

impl Store for PostgresStore {
    fn get(&self, table: Table, key: &str) -> BoxFuture<Result<Option<Row>, StoreError>> {
        let engine = Arc::clone(&self.engine);
        let position = engine.queue.position_of_row(table, key);
        let key = key.to_owned();
        self.engine.run(async move {
            engine.queue.wait_for(position).await?;
            read::get(&engine.database, table, &key).await
        })
    }

    fn scan(&self, table: Table, scan: Scan) -> BoxFuture<Result<Vec<(String, Row)>, StoreError>> {
        let engine = Arc::clone(&self.engine);
        let position = engine.queue.position_of_table(table);
        self.engine.run(async move {
            engine.queue.wait_for(position).await?;
            read::scan(&engine.database, table, scan).await
        })
    }

    fn commit(&self, commit: Commit) -> BoxFuture<Result<u64, CommitError>> {
        if let Err(error) = check_limits(&commit) {
            return Box::pin(std::future::ready(Err(error.into())));
        }
        let commit = EncodedCommit::new(commit);
        let engine = Arc::clone(&self.engine);
        let position =
            commit.rows().filter_map(|(table, key)| engine.queue.position_of_row(table, key)).max();
        self.engine.run(async move {
            engine.queue.wait_for(position).await?;
            let commits = [&commit];
            let mut prepared = PreparedCommit::new(&commits, Durability::Synced)?;
            prepared.apply(&engine.database, &engine.counters).await
        })
    }

    fn queue(&self, commit: Commit) -> Result<(), StoreError> {
        check_limits(&commit)?;
        let commit = EncodedCommit::new(commit);
        if commit.is_empty() { Ok(()) } else { self.engine.queue.push(commit) }
    }

    fn flush(&self) -> BoxFuture<Result<(), StoreError>> {
        let engine = Arc::clone(&self.engine);
        let position = engine.queue.position();
        self.engine.run(async move { engine.queue.flush(position).await })
    }

    fn sweep(&self, now_ms: u64) -> BoxFuture<Result<u64, StoreError>> {
        let engine = Arc::clone(&self.engine);
        let position = engine.queue.position();
        self.engine.run(async move {
            engine.queue.wait_for(Some(position)).await?;
            read::sweep(&engine.database, now_ms).await
        })
    }

    #[cfg(feature = "sqlite")]
    fn backup(&self, to: &std::path::Path) -> BoxFuture<Result<(), StoreError>> {
        let engine = Arc::clone(&self.engine);
        let (position, to) = (engine.queue.position(), to.to_owned());
        self.engine.run(async move {
            engine.queue.wait_for(Some(position)).await?;
            backup::write(&engine.database, to).await
        })
    }

    fn notify(&self, change: Change) {
        self.engine.changes.notify(change);
    }

    fn watch(&self) -> Changes {
        self.engine.changes.watch(&self.engine.handle, &self.engine.database)
    }

    fn health(&self) -> Option<StoreHealth> {
        let Engine { database, counters, schema, .. } = &*self.engine;
        let (in_use, waiting) = database.pool_use();
        Some(StoreHealth {
            schema_version: u32::try_from(*schema).unwrap_or(0),
            pool: PoolUse { max: database.settings().pool_size, in_use, waiting },
            retries: counters.retries.load(Ordering::Relaxed),
            unknown_outcomes: counters.unknown_outcomes.load(Ordering::Relaxed),
        })
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn close(&self) -> BoxFuture<Result<(), StoreError>> {
        let engine = Arc::clone(&self.engine);
        let task = self.engine.handle.spawn(async move { engine.close().await });
        Box::pin(async move { task.await.unwrap_or(Ok(())) })
    }
}
