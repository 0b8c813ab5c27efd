//! A backup of a database is a store in a file.

use quarterdeck_contracts::{Commit, Scan, Store, Table};
use quarterdeck_store::SqliteStore;
use quarterdeck_testkit::{PostgresServer, PostgresVersion, block_on};
use serde_json::{Value, json};

use super::support::open;

fn values(store: &dyn Store, table: Table) -> Vec<(String, Value)> {
    let rows = block_on(store.scan(table, Scan::prefix("", 10_000))).unwrap();
    rows.into_iter().map(|(key, row)| (key, row.value)).collect()
}

#[test]
fn backup_of_a_database_is_a_store_in_a_file_and_never_overwrites() {
    let Some(server) = PostgresServer::shared(PostgresVersion::V18) else { return };
    let folder = tempfile::tempdir().unwrap();
    let store = open(&server.create_database());
    let mut commit = Commit::default();
    for n in 0..12_000_u64 {
        let table = Table::ALL[n as usize % Table::ALL.len()];
        let value = json!({ "n": n, "x": 0.1, "nul": "\u{0}" });
        let expires = n.is_multiple_of(2).then_some(n);
        commit = commit.put_until(table, format!("k\u{0}{n}é"), value, expires);
    }
    block_on(store.commit(commit)).unwrap();
    store.queue(Commit::default().put(Table::Values, "queued", json!(1))).unwrap();
    let file = folder.path().join("backup.db");
    block_on(store.backup(&file)).unwrap();
    let refused = block_on(store.backup(&file)).unwrap_err().to_string();
    assert!(refused.contains("never overwrites"), "{refused}");
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files, 1, "nothing else is left beside it");

    let copy = SqliteStore::open(&file).unwrap();
    for table in Table::ALL {
        assert_eq!(values(&copy, table), values(&store, table), "{}", table.as_str());
    }
    assert_eq!(block_on(copy.sweep(11_999)).unwrap(), 6_000, "with their expiry");
}
