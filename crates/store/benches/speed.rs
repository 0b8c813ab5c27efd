//! How long rows take to be kept and read: `cargo bench -p quarterdeck-store --all-features`.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and cannot run without a store"
)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quarterdeck_contracts::{Commit, Store, Table};
use quarterdeck_store::{MemoryStore, SqliteStore};
use quarterdeck_testkit::block_on;
use serde_json::json;
use tempfile::TempDir;

const MEASURED_TIME: Duration = Duration::from_millis(500);

#[cfg(all(feature = "postgres", unix))]
#[path = "speed/engines.rs"]
mod engines;

fn main() {
    #[cfg(all(feature = "postgres", unix))]
    engines::durable_commits_of_both();
    commits_in_a_second();
    reads_while_commits_reach_the_disk();
    queueing_one_small_row();
}

/// On the disk of the build, because a temporary folder may be in memory.
fn store() -> (TempDir, SqliteStore) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let store = SqliteStore::open(folder.path().join("store.db")).unwrap();
    (folder, store)
}

fn put(key: &str, value: serde_json::Value) -> Commit {
    Commit::default().put(Table::Values, key, value)
}

fn record() -> serde_json::Value {
    json!({ "ok": true, "data": { "name": "x".repeat(200) }, "meta": { "turn": 7 } })
}

/// Commits from so many threads for a while, and says how many there were.
fn commits(store: &dyn Store, writers: usize) -> usize {
    let start = Instant::now();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..writers)
            .map(|writer| {
                scope.spawn(move || {
                    let mut done = 0;
                    while start.elapsed() < MEASURED_TIME {
                        let key = format!("{writer}/{done}");
                        block_on(store.commit(Commit::default().put(Table::Calls, key, record()))).unwrap();
                        done += 1;
                    }
                    done
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

fn commits_in_a_second() {
    for writers in [1, 64] {
        let (_folder, store) = store();
        let done = commits(&store, writers);
        println!("{writers} writers: {:.0} commits in a second", done as f64 / MEASURED_TIME.as_secs_f64());
    }
}

fn reads_while_commits_reach_the_disk() {
    let (_folder, store) = store();
    block_on(store.commit(put("settled", record()))).unwrap();
    for (what, queued) in [("a settled row", false), ("a row that was just queued", true)] {
        let over = AtomicBool::new(false);
        let mut times = Vec::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                commits(&store, 8);
                over.store(true, Ordering::Relaxed);
            });
            while !over.load(Ordering::Relaxed) {
                if queued {
                    store.queue(put("settled", record())).unwrap();
                }
                let start = Instant::now();
                block_on(store.get(Table::Values, "settled")).unwrap().unwrap();
                times.push(start.elapsed());
                thread::sleep(Duration::from_micros(200));
            }
        });
        times.sort();
        let at = |percent: usize| times[times.len() * percent / 100];
        println!("{what}: median {:?}, 99% {:?} of {} reads", at(50), at(99), times.len());
    }
}

fn queueing_one_small_row() {
    let (_folder, file) = store();
    let memory = MemoryStore::new();
    let engines: [(&str, &dyn Store); 2] = [("memory", &memory), ("file", &file)];
    for (what, store) in engines {
        // The rows of the first round are new, those of the others replace them.
        for round in ["new", "again", "again"] {
            let commits: Vec<_> = (0..10_000).map(|n| put(&format!("{n}"), json!({ "n": n }))).collect();
            let start = Instant::now();
            for commit in commits {
                store.queue(commit).unwrap();
            }
            println!("{what}: {:?} to queue a row, {round}", start.elapsed() / 10_000);
            block_on(store.commit(Commit::default().put(Table::Blocks, "settled", json!(1)))).unwrap();
        }
    }
}
