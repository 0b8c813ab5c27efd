//! The store alone.

use std::collections::BTreeSet;

use quarterdeck_contracts::{Scan, Table};
use quarterdeck_testkit::{block_on, open_store};

use crate::{Kill, in_a_database, run_and_kill};

const ROUNDS: usize = 20;

#[test]
fn a_killed_process_loses_nothing_it_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    loses_nothing(&folder.path().join("quarterdeck.db").to_string_lossy());
}

#[test]
fn a_killed_process_loses_nothing_it_acknowledged_in_a_database() {
    in_a_database(loses_nothing);
}

fn loses_nothing(store: &str) {
    let mut acknowledged = BTreeSet::new();
    for round in 0..ROUNDS {
        let arguments = ["commits".into(), store.to_owned(), round.to_string()];
        let new = run_and_kill(&arguments, &Kill::AfterLines(1 + round * 23 % 150));
        assert!(!new.is_empty());
        acknowledged.extend(new);
        let store = open_store(store);
        let rows = |table| block_on(store.scan(table, Scan::prefix("", usize::MAX))).unwrap();
        // What was sent to a server before the process died may still be carried out there.
        let (calls, values) = loop {
            let (before, values) = (rows(Table::Calls), rows(Table::Values));
            if before == rows(Table::Calls) {
                break (before, values);
            }
        };
        assert!(calls == values, "round {round}: half a commit");
        let stored: BTreeSet<String> = calls.into_iter().map(|(key, _)| key).collect();
        let lost: Vec<_> = acknowledged.difference(&stored).collect();
        assert!(lost.is_empty(), "round {round}: lost {lost:?}");
    }
}
