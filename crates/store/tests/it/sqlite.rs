//! The store in a file.

mod backup;
mod damage;
mod failing;
mod opening;
mod snapshot;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quarterdeck_contracts::{Commit, Store, Table};
use quarterdeck_store::SqliteStore;
use quarterdeck_testkit::{block_on, durable_store_promises, store_promises};
use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

store_promises!(open);
durable_store_promises!(open);

fn open(folder: &Path) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open(folder.join("store.db")).unwrap())
}

/// A folder, and the path of a store in it.
fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    (folder, path)
}

fn put(key: &str, value: Value) -> Commit {
    Commit::default().put(Table::Values, key, value)
}

fn value(store: &SqliteStore, key: &str) -> Option<Value> {
    block_on(store.get(Table::Values, key)).unwrap().map(|row| row.value)
}

/// Another program's connection that holds the right to write until it is dropped.
fn write_lock(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    connection
}

/// Runs SQL on the file, beside the store.
fn tamper(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}
