//! A call's own view of the store.

use std::sync::Arc;

use quarterdeck_contracts::{Commit, Overlay, Store, Table};
use quarterdeck_store::MemoryStore;
use quarterdeck_testkit::block_on;
use serde_json::{Value, json};

const T: Table = Table::Values;

/// A store with the given keys, each its own value.
fn world(keys: &[&str]) -> (Arc<MemoryStore>, Overlay) {
    let store = Arc::new(MemoryStore::new());
    for key in keys {
        put(&store, key, json!(key));
    }
    let shared: Arc<dyn Store> = store.clone();
    (store, Overlay::new(shared))
}

fn put(store: &MemoryStore, key: &str, value: Value) {
    block_on(store.commit(Commit::default().put(T, key, value))).unwrap();
}

fn version(store: &MemoryStore, key: &str) -> Option<u64> {
    block_on(store.get(T, key)).unwrap().map(|row| row.version)
}

fn stored(store: &MemoryStore, key: &str) -> Option<Value> {
    block_on(store.get(T, key)).unwrap().map(|row| row.value)
}

fn get(overlay: &Overlay, key: &str) -> Option<Value> {
    block_on(overlay.get(T, key)).unwrap()
}

fn keys(overlay: &Overlay, prefix: &str, limit: usize) -> Vec<String> {
    block_on(overlay.scan(T, prefix, limit)).unwrap().into_iter().map(|(key, _)| key).collect()
}

#[test]
fn overlay_reads_its_own_writes_and_no_other_reader_does() {
    let (store, overlay) = world(&["a", "b"]);
    overlay.put(T, "a", json!(1));
    overlay.put(T, "new", json!(2));
    overlay.delete(T, "b");
    assert_eq!(get(&overlay, "a"), Some(json!(1)));
    assert_eq!(get(&overlay, "new"), Some(json!(2)));
    assert_eq!(get(&overlay, "b"), None);
    assert_eq!(stored(&store, "a"), Some(json!("a")));
    assert_eq!(stored(&store, "new"), None);
    assert_eq!(stored(&store, "b"), Some(json!("b")));

    block_on(store.commit(overlay.take())).unwrap();
    assert_eq!(stored(&store, "a"), Some(json!(1)));
    assert_eq!(stored(&store, "new"), Some(json!(2)));
    assert_eq!(stored(&store, "b"), None);
}

#[test]
fn the_last_of_several_writes_counts() {
    let (_, overlay) = world(&[]);
    overlay.delete(T, "a");
    overlay.put(T, "a", json!(1));
    overlay.put(T, "a", json!(2));
    assert_eq!(get(&overlay, "a"), Some(json!(2)));
    assert_eq!(overlay.take(), Commit::default().put(T, "a", json!(2)));
}

#[test]
fn a_scan_merges_what_is_stored_with_what_was_written() {
    let (_, overlay) = world(&["a/1", "a/3", "a/5", "b/1"]);
    overlay.put(T, "a/2", json!(2));
    overlay.put(T, "a/3", json!(3));
    overlay.delete(T, "a/5");
    overlay.put(T, "c/1", json!(0));
    let rows = block_on(overlay.scan(T, "a/", 10)).unwrap();
    let expected = [("a/1", json!("a/1")), ("a/2", json!(2)), ("a/3", json!(3))];
    assert_eq!(rows, expected.map(|(key, value)| (key.to_owned(), value)));
}

#[test]
fn a_scan_is_not_cut_short_by_deletions() {
    let (_, overlay) = world(&["1", "2", "3", "4", "5"]);
    overlay.delete(T, "1");
    overlay.delete(T, "3");
    assert_eq!(keys(&overlay, "", 2), ["2", "4"]);
    assert_eq!(keys(&overlay, "", usize::MAX), ["2", "4", "5"]);
}

#[test]
fn a_scan_keeps_to_its_limit_in_the_order_of_keys() {
    let (_, overlay) = world(&["2", "4", "6"]);
    overlay.put(T, "1", json!(1));
    overlay.put(T, "5", json!(5));
    assert_eq!(keys(&overlay, "", 3), ["1", "2", "4"]);
    assert_eq!(keys(&overlay, "", 0), [""; 0]);
}

#[test]
fn a_scan_does_not_see_writes_to_other_tables() {
    let (_, overlay) = world(&["b"]);
    for table in Table::ALL.into_iter().filter(|table| *table != T) {
        overlay.put(table, "a", json!(table.as_str()));
        overlay.delete(table, "b");
    }
    assert_eq!(keys(&overlay, "", 10), ["b"]);
    assert_eq!(get(&overlay, "a"), None);
}

#[test]
fn the_commit_checks_every_row_that_was_read() {
    let (store, overlay) = world(&["a", "b", "unread"]);
    get(&overlay, "b");
    get(&overlay, "a");
    get(&overlay, "absent");
    overlay.put(T, "a", json!(1));
    overlay.put(T, "unread", json!(1));
    get(&overlay, "unread");
    let expected = Commit::default()
        .check(T, "a", version(&store, "a"))
        .check(T, "absent", None)
        .check(T, "b", version(&store, "b"))
        .put(T, "a", json!(1))
        .put(T, "unread", json!(1));
    assert_eq!(overlay.take(), expected);
}

#[test]
fn of_two_views_of_the_same_row_only_one_can_be_committed() {
    let (store, first) = world(&["a"]);
    let shared: Arc<dyn Store> = store.clone();
    let second = Overlay::new(shared);
    for overlay in [&first, &second] {
        get(overlay, "a");
        overlay.put(T, "a", json!("changed"));
    }
    block_on(store.commit(second.take())).unwrap();
    block_on(store.commit(first.take())).unwrap_err();
}

#[test]
fn the_first_reading_counts() {
    let (store, overlay) = world(&["a"]);
    let first = version(&store, "a");
    get(&overlay, "a");
    put(&store, "a", json!("changed in between"));
    assert_eq!(get(&overlay, "a"), Some(json!("changed in between")));
    overlay.put(T, "b", json!(1));
    let commit = overlay.take();
    assert_eq!(commit.checks[0].version, first);
    block_on(store.commit(commit)).unwrap_err();
}

#[test]
fn a_call_that_wrote_nothing_demands_nothing() {
    let (_, overlay) = world(&["a"]);
    get(&overlay, "a");
    keys(&overlay, "", 10);
    assert_eq!(overlay.take(), Commit::default());
}

#[test]
fn what_was_taken_is_forgotten() {
    let (_, overlay) = world(&["a"]);
    get(&overlay, "a");
    overlay.put(T, "a", json!(1));
    overlay.take();
    assert_eq!(get(&overlay, "a"), Some(json!("a")));
    assert_eq!(overlay.take(), Commit::default());
}
