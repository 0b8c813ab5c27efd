//! Background tasks of a process that is killed with `kill -9` again and again.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use quarterdeck_contracts::{Scan, Table};
use quarterdeck_runtime::{TaskStatus, list_stored_tasks};
use quarterdeck_testkit::{block_on, open_store};

use crate::{Kill, goes_on, in_a_database, run_and_kill};

const ROUNDS: u64 = 40;

#[test]
fn a_task_survives_being_killed_and_is_reported_once() {
    let folder = tempfile::tempdir().unwrap();
    are_reported_once(folder.path(), &folder.path().join("quarterdeck.db").to_string_lossy());
}

#[test]
fn a_task_in_a_database_survives_being_killed_and_is_reported_once() {
    let folder = tempfile::tempdir().unwrap();
    in_a_database(|store| are_reported_once(folder.path(), store));
}

fn are_reported_once(folder: &Path, store: &str) {
    let path = folder.to_string_lossy().into_owned();
    let mut started = Vec::new();
    let mut round = 0;
    while goes_on(round, ROUNDS, started.len()) {
        let arguments = ["tasks".to_owned(), path.clone(), store.to_owned(), format!("{round:03}")];
        // Within the time of a few tasks: before one is stored, while it runs, or before its outcome is told.
        let kill = Kill::After(Duration::from_micros(round * 7919 % 60_000));
        let lines = run_and_kill(&arguments, &kill);
        started.extend(lines.into_iter().filter(|line| line.starts_with("task_")));
        round += 1;
    }
    let last = ["tasks-end".to_owned(), path, store.to_owned(), "999".to_owned()];
    assert_eq!(run_and_kill(&last, &Kill::AfterLines(usize::MAX)), ["ready"]);

    let store = open_store(store);
    let turns = block_on(store.scan(Table::History, Scan::prefix("s/", usize::MAX))).unwrap();
    let told: Vec<String> = turns
        .into_iter()
        .flat_map(|(_, row)| serde_json::from_value::<Vec<String>>(row.value).unwrap())
        .collect();
    assert!(started.len() > ROUNDS as usize, "most rounds started something: {}", started.len());
    for id in &started {
        let times = told.iter().filter(|note| note.contains(id.as_str())).count();
        assert_eq!(times, 1, "{id} was told {times} times");
    }
    let tasks = block_on(list_stored_tasks(&*store, 10_000)).unwrap().tasks;
    assert!(tasks.iter().all(|task| task.status != TaskStatus::Running));

    let outside = std::fs::read_to_string(folder.join("outside.txt")).unwrap();
    let mut done: BTreeMap<&str, u32> = BTreeMap::new();
    outside.lines().for_each(|line| *done.entry(line).or_default() += 1);
    let twice: Vec<_> =
        done.iter().filter(|(what, times)| what.starts_with("once-") && **times > 1).collect();
    assert!(twice.is_empty(), "not idempotent, and run twice: {twice:?}");
    let resumed = done.values().filter(|times| **times > 1).count();
    let unknown = told.iter().filter(|note| note.contains("not known")).count();
    println!("{} tasks started, {resumed} run again, {unknown} unknown", started.len());
}
