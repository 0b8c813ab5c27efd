//! A node loses its session at every point at which it waits for the store.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{
    Commit, CommitError, ErrorType, Mode, Outcome, Row, Scan, Store, StoreError, Table, ToolResponse,
};
use quarterdeck_runtime::Call;
use quarterdeck_store::MemoryStore;
use serde_json::json;
use tokio::sync::Notify;

use super::world::Cluster;
use crate::orchestrator::fixture::submit_one;

/// Where a store stops a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pause {
    Before,
    /// What was asked is done, and the answer is late.
    After,
}

/// A store that holds a node up at one of its requests until the test lets it go on.
struct PausingStore {
    kept: Arc<MemoryStore>,
    plan: Mutex<Option<(u32, Pause)>>,
    requests: AtomicU32,
    reached: Arc<Notify>,
    goes_on: Arc<Notify>,
}

impl PausingStore {
    fn new(kept: &Arc<MemoryStore>) -> Arc<Self> {
        Arc::new(Self {
            kept: kept.clone(),
            plan: Mutex::default(),
            requests: AtomicU32::new(0),
            reached: Arc::default(),
            goes_on: Arc::default(),
        })
    }

    fn plan(&self, at: u32, pause: Pause) {
        self.requests.store(0, Ordering::Relaxed);
        *self.plan.lock().unwrap() = Some((at, pause));
    }

    fn pausing<T: Send + 'static>(
        &self,
        request: impl Fn() -> BoxFuture<T> + Send + 'static,
    ) -> BoxFuture<T> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let plan = *self.plan.lock().unwrap();
        let Some((_, pause)) = plan.filter(|(at, _)| *at == number) else { return request() };
        let (reached, goes_on) = (self.reached.clone(), self.goes_on.clone());
        Box::pin(async move {
            let done = if pause == Pause::After { Some(request().await) } else { None };
            reached.notify_one();
            goes_on.notified().await;
            match done {
                Some(done) => done,
                None => request().await,
            }
        })
    }
}

impl Store for PausingStore {
    fn get(&self, table: Table, key: &str) -> BoxFuture<Result<Option<Row>, StoreError>> {
        let (kept, key) = (self.kept.clone(), key.to_owned());
        self.pausing(move || kept.get(table, &key))
    }

    fn scan(&self, table: Table, scan: Scan) -> BoxFuture<Result<Vec<(String, Row)>, StoreError>> {
        let kept = self.kept.clone();
        self.pausing(move || kept.scan(table, scan.clone()))
    }

    fn commit(&self, commit: Commit) -> BoxFuture<Result<u64, CommitError>> {
        let kept = self.kept.clone();
        self.pausing(move || kept.commit(commit.clone()))
    }

    fn queue(&self, commit: Commit) -> Result<(), StoreError> {
        self.kept.queue(commit)
    }

    fn flush(&self) -> BoxFuture<Result<(), StoreError>> {
        self.kept.flush()
    }

    fn sweep(&self, now_ms: u64) -> BoxFuture<Result<u64, StoreError>> {
        self.kept.sweep(now_ms)
    }
}

fn is_unknown(response: &ToolResponse) -> bool {
    matches!(&response.outcome, Outcome::Failure(error)
        if error.details.as_ref().is_some_and(|details| details["outcome"] == "unknown"))
}

fn is_not_done(response: &ToolResponse) -> bool {
    matches!(&response.outcome, Outcome::Failure(error) if error.kind == ErrorType::Transient)
}

/// Plays one call on A, takes its session over at one point, and makes the same call on B. Whether there was such a point.
async fn lose_at(tool: &str, at: u32, pause: Pause) -> bool {
    let kept = Arc::new(MemoryStore::new());
    let store = PausingStore::new(&kept);
    let cluster = Cluster::on(kept);
    let (a, b) = (cluster.node_on("a", store.clone()), cluster.node("b").await);
    a.orchestrator.renew_node().await.unwrap();
    let session = a.open(Mode::Text).await;
    let what = Call::new(tool, json!({ "what": "it" })).with_id("provider_00001");
    store.plan(at, pause);
    let connection = session.connect();
    let running = tokio::spawn({
        let what = what.clone();
        async move { submit_one(&connection, what).await }
    });
    let reached = tokio::time::timeout(Duration::from_secs(60), store.reached.notified()).await.is_ok();
    if !reached {
        assert!(running.await.unwrap().is_ok());
        return false;
    }
    let taken = b.take_over(session.id()).await;
    // The turn of a node that died has no budget left.
    taken.begin_turn(None);
    let connection = taken.connect();
    let first = submit_one(&connection, what.clone()).await;
    store.goes_on.notify_one();
    let of_a = running.await.unwrap();
    let again = submit_one(&connection, what).await;

    let point = format!("{tool} {at} {pause:?}: A {of_a:?}\nB {first:?}\nagain {again:?}");
    let times = match tool {
        "count" => {
            let value = cluster.store.get(Table::Values, "ann/count/n").await.unwrap();
            value.map_or(0, |row| row.value.as_u64().or(row.value["value"].as_u64()).unwrap_or(99) as u32)
        }
        _ => cluster.effects.times("it"),
    };
    assert!(times <= 1, "done {times} times: {point}");
    // B says what it knows; if it has done it itself, A has not.
    let done_by_b = first.is_ok() && first.meta.idempotent_cache_hit.is_none();
    assert!(first.is_ok() || is_unknown(&first), "{point}");
    assert!(of_a.is_ok() || is_unknown(&of_a) || is_not_done(&of_a), "{point}");
    assert!(!(of_a.is_ok() && done_by_b), "{point}");
    // No answer says that it was done if it was not, nor that nothing was done if it was.
    assert!(times == 1 || !(of_a.is_ok() || first.is_ok()), "{point}");
    assert!(!(times == 1 && !done_by_b && is_not_done(&of_a)), "{point}");
    // The same call is answered the same from then on.
    assert_eq!(again.is_ok(), first.is_ok(), "{point}");
    true
}

#[tokio::test(start_paused = true)]
async fn a_write_is_done_once_wherever_its_session_is_lost() {
    for tool in ["book", "slow_book", "count"] {
        for pause in [Pause::Before, Pause::After] {
            let mut at = 0;
            while lose_at(tool, at, pause).await {
                at += 1;
            }
            assert!(at >= 2, "{tool} has at least two commits, not {at}");
        }
    }
}
