//! Copies, made while work goes on.

use std::fs;

use quarterdeck_contracts::{Commit, Scan, Store, StoreError, Table};
use quarterdeck_store::SqliteStore;
use quarterdeck_testkit::block_on;
use serde_json::json;

use super::{place, put, value};

#[test]
fn a_copy_is_a_store_with_everything_before_it() {
    let (folder, path) = place();
    let store = SqliteStore::open(&path).unwrap();
    block_on(store.commit(put("committed", json!(1)))).unwrap();
    store.queue(put("queued", json!(2))).unwrap();
    let copy = folder.path().join("copy.db");
    block_on(store.backup(&copy)).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    }
    block_on(store.commit(put("later", json!(3)))).unwrap();

    let version = |store: &SqliteStore| block_on(store.get(Table::Values, "queued")).unwrap();
    let restored = SqliteStore::open(&copy).unwrap();
    assert_eq!(value(&restored, "committed"), Some(json!(1)));
    assert_eq!(version(&restored), version(&store));
    assert_eq!(value(&restored, "later"), None);
    block_on(restored.commit(put("later", json!(4)))).unwrap();
}

#[test]
fn a_copy_never_overwrites() {
    let (folder, path) = place();
    let store = SqliteStore::open(&path).unwrap();
    let copy = folder.path().join("copy.db");
    fs::write(&copy, "precious").unwrap();
    for to in [&copy, &path] {
        let before = fs::read(to).unwrap();
        let Err(StoreError::Failed(message)) = block_on(store.backup(to)) else { panic!("it was copied") };
        assert!(message.contains("exists already"), "{message}");
        assert_eq!(fs::read(to).unwrap(), before);
    }
}

#[test]
fn a_copy_that_fails_leaves_nothing() {
    let (folder, path) = place();
    let store = SqliteStore::open(&path).unwrap();
    block_on(store.backup(&folder.path().join("no such folder/copy.db"))).unwrap_err();
    assert!(!folder.path().join("no such folder").exists());
}

#[test]
fn a_copy_is_of_one_moment() {
    let (folder, path) = place();
    let store = SqliteStore::open(&path).unwrap();
    let both = |n: u32| {
        Commit::default().put(Table::Calls, format!("{n}"), json!(n)).put(
            Table::Values,
            format!("{n}"),
            json!(n),
        )
    };
    for round in 0..10 {
        for n in 0..50 {
            store.queue(both(round * 100 + n)).unwrap();
        }
        let copied = store.backup(&folder.path().join(format!("{round}.db")));
        for n in 50..100 {
            store.queue(both(round * 100 + n)).unwrap();
        }
        block_on(copied).unwrap();
        let copy = SqliteStore::open(folder.path().join(format!("{round}.db"))).unwrap();
        let rows = |table| block_on(copy.scan(table, Scan::prefix("", 10_000))).unwrap();
        assert_eq!(rows(Table::Calls), rows(Table::Values));
        assert!(rows(Table::Calls).len() >= round as usize * 100 + 50);
    }
}
