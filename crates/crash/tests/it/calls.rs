//! The whole orchestrator: writes with an effect in our store and one outside it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use quarterdeck_contracts::{Scan, Table};
use quarterdeck_runtime::audit::verify;
use quarterdeck_testkit::{block_on, open_store};

use crate::{Kill, goes_on, in_a_database, run_and_kill};

const ROUNDS: u64 = 200;
const CALLS: u64 = 12;

/// The results of each call, over all runs of the process.
type Results = BTreeMap<String, Vec<String>>;

#[test]
fn a_write_that_was_acknowledged_is_there_and_none_is_done_twice() {
    let folder = tempfile::tempdir().unwrap();
    are_done_once(folder.path(), &folder.path().join("quarterdeck.db").to_string_lossy());
}

#[test]
fn a_write_that_was_acknowledged_in_a_database_is_there_and_none_is_done_twice() {
    let folder = tempfile::tempdir().unwrap();
    in_a_database(|store| are_done_once(folder.path(), store));
}

fn are_done_once(folder: &Path, store: &str) {
    let mut results = Results::new();
    let mut left: Vec<String> = Vec::new();
    let mut round = 0;
    while goes_on(round, ROUNDS, results.len()) {
        // Unanswered calls are delivered again, as a provider would do, and one that was answered.
        let mut plan = left.clone();
        plan.extend(results.keys().next_back().cloned());
        plan.extend((0..CALLS).map(|n| format!("call_{round:04}_{n:02}")));
        let mut arguments = vec!["calls".to_owned(), folder.to_string_lossy().into_owned(), store.to_owned()];
        arguments.extend(plan.iter().cloned());
        // Within the time of a few writes: before one begins, while it runs, or before its result is printed.
        let kill = Kill::After(Duration::from_micros(round * 7919 % 30_000));
        let lines = run_and_kill(&arguments, &kill);
        let answered = lines.len();
        for line in lines {
            let (id, word) = line.split_once(' ').unwrap();
            results.entry(id.to_owned()).or_default().push(word.to_owned());
        }
        left = plan.into_iter().skip(answered).take(3).collect();
        round += 1;
    }
    check(folder, store, &results);
}

fn check(folder: &Path, store: &str, results: &Results) {
    let outside = std::fs::read_to_string(folder.join("outside.txt")).unwrap();
    let mut done: BTreeMap<&str, u32> = BTreeMap::new();
    for line in outside.lines() {
        *done.entry(line).or_default() += 1;
    }
    let twice: Vec<_> = done.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "done twice: {twice:?}");

    let store = open_store(store);
    let values = block_on(store.scan(Table::Values, Scan::prefix("ann/book/", usize::MAX))).unwrap();
    let kept: Vec<_> = values.iter().map(|(key, _)| key.trim_start_matches("ann/book/")).collect();
    let mut unknown = 0;
    for (id, words) in results {
        let is_done = words.iter().any(|word| word == "done");
        assert!(!(is_done && words.iter().any(|word| word == "unknown")), "{id} has two answers: {words:?}");
        unknown += u32::from(!is_done);
        if is_done {
            assert_eq!(done.get(id.as_str()), Some(&1), "{id} was acknowledged and is not there");
        }
        assert_eq!(kept.contains(&id.as_str()), is_done, "{id}: the record and its effect are one");
    }
    assert!(results.len() > ROUNDS as usize, "most rounds answered something: {}", results.len());
    let trail = block_on(verify(&folder.join("audit.jsonl"), "local", &*store)).unwrap();
    assert_eq!(trail.fault, None);
    println!("{} calls answered, {unknown} of them unknown, {} done outside", results.len(), done.len());
}
