//! The store of a test: in memory, or a database of its own where `QUARTERDECK_TEST_STORE` is the address of a PostgreSQL
//! server. `make test-postgres` runs the suites that touch the store with it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{
    Change, Changes, Commit, CommitError, Row, Scan, Store, StoreError, StoreHealth, Table,
};
use quarterdeck_postgres::{Database, PostgresSettings};
use quarterdeck_store::{MemoryStore, PostgresStore, SqliteStore};

use crate::block_on;

/// An empty store for one test.
///
/// # Panics
///
/// When the server that the variable names makes no database.
pub fn new_store() -> Arc<dyn Store> {
    #[expect(clippy::disallowed_methods, reason = "a switch of the test scripts")]
    let server = std::env::var("QUARTERDECK_TEST_STORE");
    match server {
        Ok(server) => Arc::new(OwnDatabase::create(server)),
        Err(_) => Arc::new(MemoryStore::new()),
    }
}

/// The store in a file, or at the address of a database.
///
/// # Panics
///
/// When it cannot be opened.
pub fn open_store(place: &str) -> Arc<dyn Store> {
    if !place.starts_with("postgres://") {
        return Arc::new(SqliteStore::open(place).unwrap());
    }
    let database = Database::connect(PostgresSettings::from_url(place).unwrap()).unwrap();
    Arc::new(PostgresStore::open(database).unwrap())
}

/// A database that goes with the test.
///
/// A test that stops tokio's clock has it jump to the next timer whenever nothing is left to do, and a server that is about
/// to answer is nothing to tokio. So every wait for it is a blocking task, during which the clock does not jump.
struct OwnDatabase {
    /// `None` only while it is dropped.
    store: Option<PostgresStore>,
    server: String,
    name: String,
}

impl OwnDatabase {
    fn create(server: String) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("test_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        execute(&server, format!("CREATE DATABASE {name}"));
        let (base, query) = server.split_once('?').unwrap_or((&server, ""));
        let base = base.rsplit_once('/').unwrap().0;
        let settings = PostgresSettings::from_url(&format!("{base}/{name}?{query}")).unwrap();
        let store = PostgresStore::open(Database::connect(settings).unwrap()).unwrap();
        Self { store: Some(store), server, name }
    }

    fn store(&self) -> &PostgresStore {
        self.store.as_ref().unwrap()
    }
}

impl Drop for OwnDatabase {
    fn drop(&mut self) {
        drop(self.store.take());
        execute(&self.server, format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
    }
}

/// Runs one statement on a thread with a runtime of its own: tests have theirs, or none.
fn execute(server: &str, sql: String) {
    let settings = PostgresSettings::from_url(server).unwrap();
    let work = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let database = Database::connect(settings).unwrap();
            let connection = database.dedicated().await.unwrap();
            connection.client.batch_execute(&sql).await.unwrap();
        });
    });
    work.join().unwrap();
}

/// Waits in a blocking task, where there is a runtime.
fn waited<T: Send + 'static>(future: BoxFuture<T>) -> BoxFuture<T> {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => {
            let task = runtime.spawn_blocking(move || block_on(future));
            Box::pin(async move { task.await.unwrap() })
        }
        Err(_) => future,
    }
}

impl Store for OwnDatabase {
    fn get(&self, table: Table, key: &str) -> BoxFuture<Result<Option<Row>, StoreError>> {
        waited(self.store().get(table, key))
    }

    fn scan(&self, table: Table, scan: Scan) -> BoxFuture<Result<Vec<(String, Row)>, StoreError>> {
        waited(self.store().scan(table, scan))
    }

    fn commit(&self, commit: Commit) -> BoxFuture<Result<u64, CommitError>> {
        waited(self.store().commit(commit))
    }

    fn queue(&self, commit: Commit) -> Result<(), StoreError> {
        self.store().queue(commit)
    }

    fn flush(&self) -> BoxFuture<Result<(), StoreError>> {
        waited(self.store().flush())
    }

    fn sweep(&self, now_ms: u64) -> BoxFuture<Result<u64, StoreError>> {
        waited(self.store().sweep(now_ms))
    }

    fn backup(&self, to: &Path) -> BoxFuture<Result<(), StoreError>> {
        waited(self.store().backup(to))
    }

    fn notify(&self, change: Change) {
        self.store().notify(change);
    }

    fn watch(&self) -> Changes {
        self.store().watch()
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn health(&self) -> Option<StoreHealth> {
        self.store().health()
    }

    fn close(&self) -> BoxFuture<Result<(), StoreError>> {
        waited(self.store().close())
    }
}
