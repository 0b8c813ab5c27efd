//! What is still so when a folder is opened again.

use quarterdeck_contracts::{Commit, Table};
use serde_json::json;

use super::{Open, StoreFixture};

/// Values, versions and deletions.
pub fn rows_are_there_when_it_is_opened_again(open: Open) {
    let fixture = StoreFixture::new(open);
    fixture.put(Table::Values, "a", json!([1, 0.1]));
    fixture.put(Table::Values, "b", json!(2));
    fixture.commit(Commit::default().delete(Table::Values, "b")).unwrap();
    let before = fixture.row(Table::Values, "a");
    let fixture = fixture.reopen();
    assert_eq!(fixture.row(Table::Values, "a"), before);
    assert_eq!(fixture.row(Table::Values, "b"), None);
}

/// They are there although no caller waited for them.
pub fn queued_commits_are_there_after_an_orderly_end(open: Open) {
    let fixture = StoreFixture::new(open);
    for n in 0..500 {
        fixture.store.queue(Commit::default().put(Table::Calls, format!("{n}"), json!(n))).unwrap();
    }
    let fixture = fixture.reopen();
    for n in 0..500 {
        assert_eq!(fixture.value(Table::Calls, &format!("{n}")), Some(json!(n)));
    }
}

/// Even when the row with the highest is gone.
pub fn versions_grow_across_openings(open: Open) {
    let mut fixture = StoreFixture::new(open);
    let mut last = 0;
    for n in 0..5 {
        fixture.put(Table::Values, "a", json!(n));
        let version = fixture.version(Table::Values, "a").unwrap();
        assert!(version > last, "{version} came after {last}");
        last = version;
        fixture.commit(Commit::default().delete(Table::Values, "a")).unwrap();
        fixture = fixture.reopen();
    }
}

/// Seen before, deleted, opened again, made anew.
pub fn a_deleted_row_is_not_mistaken_across_openings(open: Open) {
    let fixture = StoreFixture::new(open);
    fixture.put(Table::Values, "a", json!(1));
    let old = fixture.version(Table::Values, "a");
    fixture.commit(Commit::default().delete(Table::Values, "a")).unwrap();
    let fixture = fixture.reopen();
    fixture.put(Table::Values, "a", json!(1));
    fixture.commit(Commit::default().check(Table::Values, "a", old)).unwrap_err();
}
