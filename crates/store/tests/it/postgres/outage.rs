//! Servers that restart, go away and come back.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quarterdeck_contracts::{Commit, CommitError, Store, StoreError, Table};
use quarterdeck_testkit::{PostgresServer, PostgresVersion, block_on};
use serde_json::json;

use super::support::{database_of, open};

const WRITERS: usize = 16;
/// Ten restarts, and five times all connections are ended.
const DISTURBANCES: usize = 15;

/// What one writer was told.
#[derive(Default)]
struct Told {
    applied: Vec<(String, u64)>,
    unknown: Vec<String>,
    not_done: Vec<String>,
}

#[test]
fn restarts_under_writers_lose_nothing_double_nothing_and_are_told_as_they_are() {
    let Some(server) = PostgresServer::start(PostgresVersion::V18) else { return };
    let url = server.create_database();
    let store = open(&url);
    let is_over = AtomicBool::new(false);
    let told: Vec<Told> = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| (writer, &store, &is_over))
            .map(|(writer, store, is_over)| scope.spawn(move || write(store, writer, is_over)))
            .collect();
        for n in 0..DISTURBANCES {
            thread::sleep(Duration::from_millis(300));
            match n % 3 {
                // At once, with every connection cut in the middle of whatever it does.
                0 => server.restart(),
                1 => {
                    server.kill();
                    server.restart();
                }
                _ => drop(server.execute(
                    "postgres",
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'quarterdeck'",
                )),
            }
        }
        thread::sleep(Duration::from_millis(300));
        is_over.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let (applied, unknown) = compare(&server, database_of(&url), &told);
    let health = store.health().unwrap();
    assert_eq!((health.schema_version, health.pool.max, health.unknown_outcomes), (1, 16, unknown as u64));
    assert!(health.retries > 0, "every restart cut lines");
    assert!(applied > WRITERS * DISTURBANCES, "only {applied} were applied");
}

#[test]
fn failover_to_a_synchronous_standby_loses_nothing_that_was_told() {
    let Some(primary) = PostgresServer::start(PostgresVersion::V16) else { return };
    let name = database_of(&primary.create_database()).to_owned();
    let standby = primary.start_synchronous_standby();
    let url = format!("postgres://qd@127.0.0.1:{},127.0.0.1:{}/{name}", primary.port(), standby.port());
    let store = open(&url);
    let is_over = AtomicBool::new(false);
    let told: Vec<Told> = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| (writer, &store, &is_over))
            .map(|(writer, store, is_over)| scope.spawn(move || write(store, writer, is_over)))
            .collect();
        thread::sleep(Duration::from_millis(500));
        primary.kill();
        standby.promote();
        thread::sleep(Duration::from_millis(1_500));
        is_over.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let (applied, _) = compare(&standby, &name, &told);
    assert!(applied > 0, "the old server took none");
    // The store has found the new one by itself.
    block_on(store.commit(Commit::default().put(Table::Values, "after", json!(1)))).unwrap();
    assert_eq!(standby.execute(&name, "SELECT count(*) FROM qd.rows WHERE tab = 9"), "1");
}

/// Holds what writers were told against what is stored, and returns how many were applied and how many unknown.
fn compare(server: &PostgresServer, database: &str, told: &[Told]) -> (usize, usize) {
    let rows =
        server.execute(database, "SELECT encode(key, 'escape') || ' ' || version FROM qd.rows WHERE tab = 3");
    let stored: BTreeMap<&str, u64> = rows
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(key, version)| (key, version.parse().unwrap()))
        .collect();
    let applied: usize = told.iter().map(|told| told.applied.len()).sum();
    let unknown: usize = told.iter().map(|told| told.unknown.len()).sum();
    for told in told {
        for (key, version) in &told.applied {
            assert_eq!(stored.get(key.as_str()), Some(version), "{key} was told as applied");
        }
        for key in &told.not_done {
            assert!(!stored.contains_key(key.as_str()), "{key} was told as not done");
        }
    }
    assert!(stored.len() >= applied && stored.len() <= applied + unknown, "{} rows", stored.len());
    (applied, unknown)
}

/// A chain of commits, each on what the last one left: one that is lost or applied twice breaks it.
fn write(store: &dyn Store, writer: usize, is_over: &AtomicBool) -> Told {
    let mut told = Told::default();
    let head = format!("head {writer}");
    let mut seen = None;
    for n in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let key = format!("{writer}/{n}");
        let commit = Commit::default()
            .check(Table::Sessions, head.as_str(), seen)
            .check(Table::Calls, key.as_str(), None)
            .put(Table::Sessions, head.as_str(), json!(n))
            .put(Table::Calls, key.as_str(), json!(n));
        match block_on(store.commit(commit)) {
            Ok(version) => {
                seen = Some(version);
                told.applied.push((key, version));
            }
            Err(CommitError::Store(StoreError::Unavailable(_))) => told.not_done.push(key),
            Err(CommitError::Unknown(_)) => {
                told.unknown.push(key);
                seen = block_on(store.get(Table::Sessions, &head)).unwrap().map(|row| row.version);
            }
            Err(error) => panic!("writer {writer} is alone on its rows and was told: {error}"),
        }
    }
    told
}

#[test]
fn server_that_is_away_is_told_as_unavailable_and_the_store_comes_back_by_itself() {
    let Some(server) = PostgresServer::start(PostgresVersion::V16) else { return };
    let store = open(&server.create_database());
    let put = |key: &str| Commit::default().put(Table::Values, key, json!(1));
    block_on(store.commit(put("before"))).unwrap();
    server.stop();
    let begin = Instant::now();
    let (read, commit) = (store.get(Table::Values, "before"), store.commit(put("away")));
    store.queue(put("queued")).unwrap();
    assert!(matches!(block_on(read), Err(StoreError::Unavailable(_))));
    let refused = block_on(commit);
    // The first attempt may have met a connection that was not known to be dead yet.
    assert!(
        matches!(refused, Err(CommitError::Store(StoreError::Unavailable(_)) | CommitError::Unknown(_))),
        "{refused:?}"
    );
    assert!(begin.elapsed() < Duration::from_secs(14), "{:?}", begin.elapsed());
    let refused = block_on(store.commit(put("away again")));
    assert!(matches!(refused, Err(CommitError::Store(StoreError::Unavailable(_)))), "{refused:?}");
    server.restart();
    block_on(store.commit(put("after"))).unwrap();
    block_on(store.flush()).unwrap();
    assert!(block_on(store.get(Table::Values, "queued")).unwrap().is_some());
    assert_eq!(block_on(store.get(Table::Values, "away again")).unwrap(), None);
}

#[test]
fn closed_store_says_so_and_has_written_what_was_queued() {
    let Some(server) = PostgresServer::shared(PostgresVersion::V18) else { return };
    let url = server.create_database();
    let store = open(&url);
    store.queue(Commit::default().put(Table::Values, "a", json!(1))).unwrap();
    block_on(store.close()).unwrap();
    assert_eq!(block_on(store.get(Table::Values, "a")), Err(StoreError::Closed));
    assert_eq!(block_on(store.commit(Commit::default())), Err(CommitError::Store(StoreError::Closed)));
    assert_eq!(store.queue(Commit::default().put(Table::Values, "b", json!(1))), Err(StoreError::Closed));
    assert!(block_on(open(&url).get(Table::Values, "a")).unwrap().is_some());
}
