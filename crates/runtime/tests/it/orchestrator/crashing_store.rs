//! A store that loses what it may lose, and a process that dies in the middle of a commit.

use std::sync::{Arc, Mutex};

use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{Commit, CommitError, Row, Scan, Store, StoreError, Table};
use quarterdeck_testkit::block_on;
use tokio::sync::Notify;

/// Wraps a store, which answers before anything else happens: tokio's clock is stopped, and would jump while a server is
/// waited for. Queued commits wait until the next commit or read, and die with the process.
pub(crate) struct CrashingStore {
    kept: Arc<dyn Store>,
    queued: Mutex<Vec<Commit>>,
    plan: Mutex<Option<CrashPoint>>,
    pub(crate) died: Notify,
}

/// When the process dies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CrashPoint {
    /// After so many commits.
    pub(crate) after: u32,
    /// Whether the last commit is applied first.
    pub(crate) applied: bool,
}

impl CrashingStore {
    pub(crate) fn new(kept: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { kept, queued: Mutex::default(), plan: Mutex::default(), died: Notify::new() })
    }

    /// Plans a death in one of the next commits.
    pub(crate) fn die(&self, death: CrashPoint) {
        *self.plan.lock().unwrap() = Some(death);
    }

    /// The process is gone, and with it everything that was only queued.
    pub(crate) fn lose_queue(&self) {
        self.queued.lock().unwrap().clear();
        *self.plan.lock().unwrap() = None;
    }

    /// The process lives on after all.
    pub(crate) fn lose_plan(&self) {
        *self.plan.lock().unwrap() = None;
    }

    fn settle(&self) {
        for commit in self.queued.lock().unwrap().drain(..) {
            let _ = self.kept.queue(commit);
        }
    }

    /// Whether the process dies in this commit, and whether the commit is applied first.
    fn dies(&self) -> Option<bool> {
        let mut plan = self.plan.lock().unwrap();
        let death = plan.as_mut()?;
        if death.after > 0 {
            death.after -= 1;
            return None;
        }
        plan.take().map(|death| death.applied)
    }
}

impl Store for CrashingStore {
    fn get(&self, table: Table, key: &str) -> BoxFuture<Result<Option<Row>, StoreError>> {
        self.settle();
        answered(self.kept.get(table, key))
    }

    fn scan(&self, table: Table, scan: Scan) -> BoxFuture<Result<Vec<(String, Row)>, StoreError>> {
        self.settle();
        answered(self.kept.scan(table, scan))
    }

    fn commit(&self, commit: Commit) -> BoxFuture<Result<u64, CommitError>> {
        self.settle();
        match self.dies() {
            None => {
                let applied = answered(self.kept.commit(commit));
                // A disk takes its time, so that other things happen in between.
                Box::pin(async move {
                    tokio::task::yield_now().await;
                    applied.await
                })
            }
            Some(applied) => {
                if applied {
                    drop(answered(self.kept.commit(commit)));
                }
                self.died.notify_one();
                Box::pin(std::future::pending())
            }
        }
    }

    fn queue(&self, commit: Commit) -> Result<(), StoreError> {
        self.queued.lock().unwrap().push(commit);
        Ok(())
    }

    fn flush(&self) -> BoxFuture<Result<(), StoreError>> {
        self.settle();
        answered(self.kept.flush())
    }

    fn sweep(&self, now_ms: u64) -> BoxFuture<Result<u64, StoreError>> {
        answered(self.kept.sweep(now_ms))
    }

    fn is_shared(&self) -> bool {
        self.kept.is_shared()
    }
}

fn answered<T: Send + 'static>(answer: BoxFuture<T>) -> BoxFuture<T> {
    Box::pin(std::future::ready(block_on(answer)))
}
