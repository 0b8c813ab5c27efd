//! A process that is killed while it writes.
//!
//! This shows that no acknowledged commit waits in the process. That none waits in the system's memory either is the
//! work of `synchronous=FULL`, which only a power cut could test.

use std::collections::BTreeSet;
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use quarterdeck_contracts::{Commit, Scan, Store, Table};
use quarterdeck_store::SqliteStore;
use quarterdeck_testkit::block_on;
use serde_json::json;

use super::place;

const ROUNDS: usize = 20;
const WRITERS: usize = 8;

/// Where the process that is to be killed finds its store.
const PATH: &str = "QUARTERDECK_TEST_STORE";
const ROUND: &str = "QUARTERDECK_TEST_ROUND";

#[test]
fn a_killed_process_loses_nothing_it_acknowledged() {
    let (_folder, path) = place();
    let mut acknowledged = BTreeSet::new();
    for round in 0..ROUNDS {
        let new = run_and_kill(&path, round, 1 + round * 23 % 150);
        assert!(!new.is_empty());
        acknowledged.extend(new);
        let store = SqliteStore::open(&path).unwrap();
        let rows = |table| block_on(store.scan(table, Scan::prefix("", usize::MAX))).unwrap();
        let (calls, values) = (rows(Table::Calls), rows(Table::Values));
        assert_eq!(calls, values, "round {round}: half a commit");
        let stored: BTreeSet<String> = calls.into_iter().map(|(key, _)| key).collect();
        let lost: Vec<_> = acknowledged.difference(&stored).collect();
        assert!(lost.is_empty(), "round {round}: lost {lost:?}");
    }
}

/// Kills a process that writes after so many of its commits, and tells which it had acknowledged.
fn run_and_kill(path: &Path, round: usize, after: usize) -> Vec<String> {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "sqlite::crash::the_process_that_is_killed", "--ignored", "--nocapture"])
        .env(PATH, path)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut acknowledged = Vec::new();
    for line in lines.map_while(Result::ok) {
        let Some(key) = line.strip_prefix("committed ").and_then(|rest| rest.strip_suffix(" whole")) else {
            continue;
        };
        acknowledged.push(key.to_owned());
        if acknowledged.len() == after {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    acknowledged
}

#[test]
#[ignore = "is started and killed by the test above"]
fn the_process_that_is_killed() {
    let (Ok(path), Ok(round)) = (env::var(PATH), env::var(ROUND)) else { return };
    let store = SqliteStore::open(path).unwrap();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (store, round) = (&store, &round);
            scope.spawn(move || {
                for n in 0..100_000 {
                    let key = format!("{round}/{writer}/{n}");
                    let value = json!("x".repeat(n % 2000));
                    let commit = Commit::default().put(Table::Calls, key.as_str(), value.clone()).put(
                        Table::Values,
                        key.as_str(),
                        value,
                    );
                    block_on(store.commit(commit)).unwrap();
                    // The leading line break keeps it apart from what the test harness prints.
                    writeln!(std::io::stdout(), "\ncommitted {key} whole").unwrap();
                }
            });
        }
    });
}
