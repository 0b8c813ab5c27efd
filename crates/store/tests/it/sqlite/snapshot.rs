//! A file as of one moment, and without what nothing uses.

use quarterdeck_contracts::{Commit, Store, Table};
use quarterdeck_store::{ExportedRow, SqliteSnapshot, SqliteStore, vacuum_sqlite};
use quarterdeck_testkit::block_on;
use serde_json::json;
use tempfile::tempdir;

#[test]
fn snapshot_pages_through_the_rows_of_its_moment_with_their_expiry() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).unwrap();
    let mut commit = Commit::default();
    for number in 0..7 {
        commit = commit.put_until(Table::Values, format!("k{number}"), json!({ "n": number }), Some(number));
    }
    block_on(store.commit(commit.put(Table::Blocks, "k9", json!("other table")))).unwrap();
    let snapshot = SqliteSnapshot::open(&path).unwrap();
    block_on(store.commit(Commit::default().delete(Table::Values, "k0").put(Table::Values, "k8", json!(8))))
        .unwrap();
    let mut rows: Vec<ExportedRow> = Vec::new();
    loop {
        let page = snapshot.rows(Table::Values, rows.last().map(|row| row.key.as_str()), 3).unwrap();
        if page.is_empty() {
            break;
        }
        rows.extend(page);
    }
    let row = |number: u64| ExportedRow {
        table: Table::Values,
        key: format!("k{number}"),
        value: json!({ "n": number }).to_string(),
        expires_ms: Some(number),
    };
    assert_eq!(rows, (0..7).map(row).collect::<Vec<_>>());
}

#[test]
fn vacuum_gives_unused_pages_back_and_loses_nothing() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).unwrap();
    let large = json!("x".repeat(100_000));
    for number in 0..30 {
        let commit = Commit::default().put(Table::Values, format!("k{number}"), large.clone());
        block_on(store.commit(commit)).unwrap();
    }
    let kept =
        (0..29).fold(Commit::default(), |commit, number| commit.delete(Table::Values, format!("k{number}")));
    block_on(store.commit(kept)).unwrap();
    // Into the file first: what is in the log alone has no size yet.
    block_on(store.close()).unwrap();
    let (before, after) = vacuum_sqlite(&path).unwrap();
    assert!(before > 2_000_000 && after < 500_000, "{before} {after}");
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(block_on(store.get(Table::Values, "k29")).unwrap().unwrap().value, large);
    assert!(vacuum_sqlite(&folder.path().join("none.db")).is_err());
}
