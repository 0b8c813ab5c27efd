//! The whole orchestrator: writes with an effect in our store and one outside it.

use std::collections::BTreeMap;
use std::time::Duration;

use quarterdeck_contracts::{Scan, Store, Table};
use quarterdeck_runtime::audit::verify;
use quarterdeck_store::SqliteStore;
use quarterdeck_testkit::block_on;

use crate::{Kill, run_and_kill};

const ROUNDS: u64 = 200;
const CALLS: u64 = 12;

/// The results of each call, over all runs of the process.
type Results = BTreeMap<String, Vec<String>>;

#[test]
fn a_write_that_was_acknowledged_is_there_and_none_is_done_twice() {
    let folder = tempfile::tempdir().unwrap();
    let mut results = Results::new();
    let mut left: Vec<String> = Vec::new();
    for round in 0..ROUNDS {
        // Unanswered calls are delivered again, as a provider would do, and one that was answered.
        let mut plan = left.clone();
        plan.extend(results.keys().next_back().cloned());
        plan.extend((0..CALLS).map(|n| format!("call_{round:04}_{n:02}")));
        let mut arguments = vec!["calls".to_owned(), folder.path().to_string_lossy().into_owned()];
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
    }
    check(folder.path(), &results);
}

fn check(folder: &std::path::Path, results: &Results) {
    let outside = std::fs::read_to_string(folder.join("outside.txt")).unwrap();
    let mut done: BTreeMap<&str, u32> = BTreeMap::new();
    for line in outside.lines() {
        *done.entry(line).or_default() += 1;
    }
    let twice: Vec<_> = done.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "done twice: {twice:?}");

    let store = SqliteStore::open(folder.join("quarterdeck.db")).unwrap();
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
    let trail = block_on(verify(&folder.join("audit.jsonl"), "local", &store)).unwrap();
    assert_eq!(trail.fault, None);
    println!("{} calls answered, {unknown} of them unknown, {} done outside", results.len(), done.len());
}
