//! Durable commits of both engines, side by side on one disk.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use quarterdeck_contracts::{Commit, Store, Table, Take};
use quarterdeck_postgres::{Database, PostgresSettings};
use quarterdeck_store::{PostgresStore, SqliteStore};
use quarterdeck_testkit::{PostgresServer, PostgresVersion, block_on};
use serde_json::json;

const MEASURED_TIME: Duration = Duration::from_secs(3);

/// With every sync that a commit needs. Says nothing of PostgreSQL where it is not installed.
pub(super) fn durable_commits_of_both() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let settings = ["fsync=on", "full_page_writes=on", "max_connections=80"];
    let Some(server) = PostgresServer::start_in(folder, PostgresVersion::V18, &settings) else { return };
    for writers in [1, 16, 64] {
        let place = tempfile::tempdir_in(folder).unwrap();
        let file = SqliteStore::open(place.path().join("store.db")).unwrap();
        report("SQLite, calls", writers, &mut calls(&file, writers));
        let settings = PostgresSettings::from_url(&server.create_database()).unwrap();
        let database = PostgresStore::open(Database::connect(settings).unwrap()).unwrap();
        report("PostgreSQL, calls", writers, &mut calls(&database, writers));
        report("SQLite, one rate limit", writers, &mut takes(&file, writers));
        report("PostgreSQL, one rate limit", writers, &mut takes(&database, writers));
    }
}

/// As the orchestrator marks a call: the lease is proven, the call was not there, two rows are written.
fn calls(store: &dyn Store, writers: usize) -> Vec<Duration> {
    let lease = |writer| Commit::default().put(Table::Leases, format!("{writer}"), json!({ "node": "a" }));
    let tokens: Vec<u64> =
        (0..writers).map(|writer| block_on(store.commit(lease(writer))).unwrap()).collect();
    measure(writers, |writer, n| {
        let commit = Commit::default()
            .check(Table::Leases, format!("{writer}"), Some(tokens[writer]))
            .check(Table::Calls, format!("{writer}/{n}"), None)
            .put(Table::Calls, format!("{writer}/{n}"), json!({ "state": "begun", "text": "x".repeat(200) }))
            .put(Table::Sessions, format!("{writer}"), json!({ "turn": n }));
        block_on(store.commit(commit)).unwrap();
    })
}

/// All count in one row.
fn takes(store: &dyn Store, writers: usize) -> Vec<Duration> {
    let take = Take { key: "all".into(), count: 1, limit: u64::MAX, window_ms: 1_000, now_ms: 0 };
    measure(writers, |_, _| {
        block_on(store.commit(Commit::default().take(take.clone()))).unwrap();
    })
}

fn measure(writers: usize, commit: impl Fn(usize, usize) + Sync) -> Vec<Duration> {
    let begin = Instant::now();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..writers)
            .map(|writer| {
                let commit = &commit;
                scope.spawn(move || {
                    let mut times = Vec::new();
                    while begin.elapsed() < MEASURED_TIME {
                        let start = Instant::now();
                        commit(writer, times.len());
                        times.push(start.elapsed());
                    }
                    times
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

fn report(what: &str, writers: usize, times: &mut [Duration]) {
    times.sort();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1_000.0;
    let rate = times.len() as f64 / MEASURED_TIME.as_secs_f64();
    println!("{what}, {writers} at a time: {rate:.0} commits/s, p50 {:.2} ms, p99 {:.2} ms", at(50), at(99));
}
