//! What every engine promises, on both versions, and with two handles that take turns.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{Change, Changes, Commit, CommitError, Row, Scan, Store, StoreError, Table};
use quarterdeck_store::PostgresStore;
use quarterdeck_testkit::{PostgresVersion, block_on, durable_store_promises, store_promises};

use super::support::{address_of_folder, open, open_folder};

store_promises!(in version_16_keeps_every_promise, open_16);
durable_store_promises!(in version_16_keeps_every_durable_promise, open_16);
store_promises!(in version_18_keeps_every_promise, open_18);
durable_store_promises!(in version_18_keeps_every_durable_promise, open_18);
store_promises!(in two_handles_keep_every_promise, open_twice);
durable_store_promises!(in two_handles_keep_every_durable_promise, open_twice);

fn open_16(folder: &Path) -> Arc<dyn Store> {
    open_folder(PostgresVersion::V16, folder)
}

fn open_18(folder: &Path) -> Arc<dyn Store> {
    open_folder(PostgresVersion::V18, folder)
}

fn open_twice(folder: &Path) -> Arc<dyn Store> {
    match address_of_folder(PostgresVersion::V18, folder) {
        Some(url) => Arc::new(TwoHandles { handles: [open(&url), open(&url)], turn: AtomicUsize::new(0) }),
        None => open_folder(PostgresVersion::V18, folder),
    }
}

/// Two nodes on one database: each request goes to the other one than the last.
struct TwoHandles {
    handles: [PostgresStore; 2],
    turn: AtomicUsize,
}

impl TwoHandles {
    /// What was queued in one node is not promised to the other before it is flushed.
    fn next(&self) -> &PostgresStore {
        for handle in &self.handles {
            block_on(handle.flush()).unwrap();
        }
        self.same()
    }

    fn same(&self) -> &PostgresStore {
        &self.handles[self.turn.fetch_add(1, Ordering::Relaxed) % 2]
    }
}

impl Store for TwoHandles {
    fn get(&self, table: Table, key: &str) -> BoxFuture<Result<Option<Row>, StoreError>> {
        self.next().get(table, key)
    }

    fn scan(&self, table: Table, scan: Scan) -> BoxFuture<Result<Vec<(String, Row)>, StoreError>> {
        self.next().scan(table, scan)
    }

    fn commit(&self, commit: Commit) -> BoxFuture<Result<u64, CommitError>> {
        self.next().commit(commit)
    }

    fn queue(&self, commit: Commit) -> Result<(), StoreError> {
        self.handles[0].queue(commit)
    }

    fn flush(&self) -> BoxFuture<Result<(), StoreError>> {
        self.handles[0].flush()
    }

    fn sweep(&self, now_ms: u64) -> BoxFuture<Result<u64, StoreError>> {
        self.next().sweep(now_ms)
    }

    fn notify(&self, change: Change) {
        self.same().notify(change);
    }

    fn watch(&self) -> Changes {
        self.same().watch()
    }
}
