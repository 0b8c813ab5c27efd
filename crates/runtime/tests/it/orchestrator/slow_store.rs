//! A store that is slow or hangs.

use std::sync::atomic::{AtomicBool, Ordering};

use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{Commit, CommitError, Row, Scan, Store, StoreError, Table};
use quarterdeck_store::MemoryStore;

/// Yields before each read, and never answers a commit while it `hangs`.
#[derive(Default)]
pub(crate) struct SlowStore {
    store: MemoryStore,
    pub(crate) hangs: AtomicBool,
}

impl Store for SlowStore {
    fn get(&self, table: Table, key: &str) -> BoxFuture<Result<Option<Row>, StoreError>> {
        hesitate(self.store.get(table, key))
    }

    fn scan(&self, table: Table, scan: Scan) -> BoxFuture<Result<Vec<(String, Row)>, StoreError>> {
        hesitate(self.store.scan(table, scan))
    }

    fn commit(&self, commit: Commit) -> BoxFuture<Result<u64, CommitError>> {
        if self.hangs.load(Ordering::Relaxed) {
            return Box::pin(std::future::pending());
        }
        self.store.commit(commit)
    }

    fn queue(&self, commit: Commit) -> Result<(), StoreError> {
        self.store.queue(commit)
    }

    fn flush(&self) -> BoxFuture<Result<(), StoreError>> {
        self.store.flush()
    }

    fn sweep(&self, now_ms: u64) -> BoxFuture<Result<u64, StoreError>> {
        self.store.sweep(now_ms)
    }
}

fn hesitate<T: Send + 'static>(answer: BoxFuture<T>) -> BoxFuture<T> {
    Box::pin(async move {
        tokio::task::yield_now().await;
        answer.await
    })
}
