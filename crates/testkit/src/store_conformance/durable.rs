//! What is still so when a folder is opened again.

use quarterdeck_contracts::{Commit, Table};
use serde_json::json;

use super::{Open, Trial};

/// Values, versions and deletions.
pub fn rows_are_there_when_it_is_opened_again(open: Open) {
    let trial = Trial::new(open);
    trial.put(Table::Values, "a", json!([1, 0.1]));
    trial.put(Table::Values, "b", json!(2));
    trial.commit(Commit::default().delete(Table::Values, "b")).unwrap();
    let before = trial.row(Table::Values, "a");
    let trial = trial.reopen();
    assert_eq!(trial.row(Table::Values, "a"), before);
    assert_eq!(trial.row(Table::Values, "b"), None);
}

/// Nobody waited for them, and still they are there.
pub fn queued_commits_are_there_after_an_orderly_end(open: Open) {
    let trial = Trial::new(open);
    for n in 0..500 {
        trial.store.queue(Commit::default().put(Table::Calls, format!("{n}"), json!(n))).unwrap();
    }
    let trial = trial.reopen();
    for n in 0..500 {
        assert_eq!(trial.value(Table::Calls, &format!("{n}")), Some(json!(n)));
    }
}

/// Even when the row with the highest is gone.
pub fn versions_grow_across_openings(open: Open) {
    let mut trial = Trial::new(open);
    let mut last = 0;
    for n in 0..5 {
        trial.put(Table::Values, "a", json!(n));
        let version = trial.version(Table::Values, "a").unwrap();
        assert!(version > last, "{version} came after {last}");
        last = version;
        trial.commit(Commit::default().delete(Table::Values, "a")).unwrap();
        trial = trial.reopen();
    }
}

/// Seen before, deleted, opened again, made anew.
pub fn a_deleted_row_is_not_mistaken_across_openings(open: Open) {
    let trial = Trial::new(open);
    trial.put(Table::Values, "a", json!(1));
    let old = trial.version(Table::Values, "a");
    trial.commit(Commit::default().delete(Table::Values, "a")).unwrap();
    let trial = trial.reopen();
    trial.put(Table::Values, "a", json!(1));
    trial.commit(Commit::default().check(Table::Values, "a", old)).unwrap_err();
}
