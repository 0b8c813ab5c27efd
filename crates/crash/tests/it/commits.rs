//! The store alone.

use std::collections::BTreeSet;

use quarterdeck_contracts::{Scan, Store, Table};
use quarterdeck_store::SqliteStore;
use quarterdeck_testkit::block_on;

use crate::{Kill, run_and_kill};

const ROUNDS: usize = 20;

#[test]
fn a_killed_process_loses_nothing_it_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("quarterdeck.db");
    let mut acknowledged = BTreeSet::new();
    for round in 0..ROUNDS {
        let arguments = ["commits".into(), path.to_string_lossy().into_owned(), round.to_string()];
        let new = run_and_kill(&arguments, &Kill::AfterLines(1 + round * 23 % 150));
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
