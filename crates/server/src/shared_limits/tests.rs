use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{Row, Scan, Table};
use quarterdeck_store::MemoryStore;

use super::*;

const NOW_MS: u64 = 1_800_000_000_000;

/// Counts commits, or fails them.
#[derive(Default)]
struct CountingStore {
    store: MemoryStore,
    commits: AtomicU64,
    is_down: std::sync::atomic::AtomicBool,
}

impl Store for CountingStore {
    fn get(&self, table: Table, key: &str) -> BoxFuture<Result<Option<Row>, StoreError>> {
        self.store.get(table, key)
    }

    fn scan(&self, table: Table, scan: Scan) -> BoxFuture<Result<Vec<(String, Row)>, StoreError>> {
        self.store.scan(table, scan)
    }

    fn commit(&self, commit: Commit) -> BoxFuture<Result<u64, CommitError>> {
        self.commits.fetch_add(1, Ordering::Relaxed);
        if self.is_down.load(Ordering::Relaxed) {
            let error = StoreError::Unavailable("told to".into());
            return Box::pin(std::future::ready(Err(error.into())));
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

    fn backup(&self, to: &Path) -> BoxFuture<Result<(), StoreError>> {
        self.store.backup(to)
    }
}

#[tokio::test]
async fn a_burst_over_two_nodes_gets_the_limit_for_few_commits() {
    let store = CountingStore::default();
    let nodes = [RequestPlaces::per_minute(300), RequestPlaces::per_minute(300)];
    let mut admitted = 0;
    for number in 0..2_000 {
        admitted += usize::from(nodes[number % 2].acquire(&store, "203.0.113.7", NOW_MS).await.is_ok());
    }
    assert!((262..=300).contains(&admitted), "{admitted} of 300");
    let commits = store.commits.load(Ordering::Relaxed);
    assert!(commits < 100, "{commits} commits for 2,000 requests");
    assert!(nodes[0].acquire(&store, "203.0.113.8", NOW_MS).await.is_ok(), "another address");
}

#[tokio::test]
async fn a_single_request_takes_a_single_place() {
    let store = MemoryStore::default();
    for number in 0..2 {
        let node = RequestPlaces::per_minute(2);
        assert_eq!(node.acquire(&store, "a", NOW_MS).await, Ok(()), "{number}");
    }
    let refused = RequestPlaces::per_minute(2).acquire(&store, "a", NOW_MS).await;
    assert_eq!(refused, Err(NoPlace::Exhausted(WINDOW + PLACES_LIFETIME)));
}

#[tokio::test]
async fn a_store_that_fails_is_not_asked_by_every_request() {
    let store = CountingStore::default();
    store.is_down.store(true, Ordering::Relaxed);
    let node = RequestPlaces::per_minute(300);
    for _ in 0..100 {
        assert!(matches!(node.acquire(&store, "a", NOW_MS).await, Err(NoPlace::Store(_))));
    }
    assert_eq!(store.commits.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn messages_over_their_limit_are_refused_with_the_time_to_wait() {
    let store = MemoryStore::default();
    for _ in 0..3 {
        assert_eq!(count_message(&store, "ann", 3, NOW_MS).await, Ok(()));
    }
    let later = NOW_MS + 20_000;
    let wait = Duration::from_secs(40);
    assert_eq!(count_message(&store, "ann", 3, later).await, Err(NoPlace::Exhausted(wait)));
    assert_eq!(count_message(&store, "ben", 3, later).await, Ok(()));
    assert_eq!(count_message(&store, "ann", 3, NOW_MS + 60_000).await, Ok(()));
}

proptest! {
    /// Whatever the nodes take and lose, no minute has more requests than the limit.
    #[test]
    fn no_minute_has_more_requests_than_the_limit(
        limit in 1_u32..60,
        steps in prop::collection::vec((0_usize..3, 0_u64..6_000, 1_usize..20), 1..120),
    ) {
        let store = MemoryStore::default();
        let nodes: Vec<_> = (0..3).map(|_| RequestPlaces::per_minute(limit)).collect();
        let started = Instant::now();
        let (mut at_ms, mut admitted) = (0_u64, Vec::new());
        for (node, pause_ms, count) in steps {
            at_ms += pause_ms;
            let now = started + Duration::from_millis(at_ms);
            for _ in 0..count {
                let asked = acquire_at(&nodes[node], &store, now, NOW_MS + at_ms);
                admitted.extend(asked.then_some(at_ms));
            }
        }
        for from in &admitted {
            let within = admitted.iter().filter(|at| (*from..from + 60_000).contains(*at)).count();
            prop_assert!(within <= limit as usize, "{} of {}", within, limit);
        }
    }
}

/// What [`RequestPlaces::acquire`] does, at a given time.
fn acquire_at(node: &RequestPlaces, store: &MemoryStore, now: Instant, now_ms: u64) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(node.acquire_at(store, "a", now, now_ms)).is_ok()
}
