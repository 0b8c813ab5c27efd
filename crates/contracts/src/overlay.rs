//! A call's own view of the store.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::{Commit, Scan, Store, StoreError, Table};

/// What one call has read and wants to write. It reads its own writes; other calls do not until they are committed
/// together with the call's record, or never.
///
/// Every row that was read with [`Overlay::get`] must still be the same at the commit, so that two calls which
/// decide from the same row cannot both succeed. A scan gives no such guarantee: a call that decides from one also reads
/// a row that every writer of the scanned rows changes.
pub struct Overlay {
    store: Arc<dyn Store>,
    changes: Mutex<Changes>,
}

#[derive(Default)]
struct Changes {
    read: BTreeMap<(Table, String), Option<u64>>,
    written: BTreeMap<(Table, String), Option<Value>>,
    /// When rows that are written may be forgotten, in milliseconds since 1970.
    expiry: BTreeMap<(Table, String), u64>,
}

impl Overlay {
    /// An empty view.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, changes: Mutex::default() }
    }

    /// One row, as this call sees it.
    pub async fn get(&self, table: Table, key: &str) -> Result<Option<Value>, StoreError> {
        if let Some(written) = self.lock().written.get(&(table, key.to_owned())) {
            return Ok(written.clone());
        }
        let row = self.store.get(table, key).await?;
        let version = row.as_ref().map(|row| row.version);
        // The first reading counts: a second one that differs must not hide that something changed in between.
        self.lock().read.entry((table, key.to_owned())).or_insert(version);
        Ok(row.map(|row| row.value))
    }

    /// Every row with a prefix, up to `limit` rows, as this call sees them, in the order of their keys.
    pub async fn scan(
        &self,
        table: Table,
        prefix: &str,
        limit: usize,
    ) -> Result<Vec<(String, Value)>, StoreError> {
        let written = self.written(table, prefix);
        // Each row that this call deleted may take the place of one that it should see.
        let deleted = written.iter().filter(|(_, value)| value.is_none()).count();
        let wanted = Scan::prefix(prefix, limit.saturating_add(deleted));
        let stored = self.store.scan(table, wanted).await?;
        let mut rows: BTreeMap<String, Value> =
            stored.into_iter().map(|(key, row)| (key, row.value)).collect();
        for (key, value) in written {
            match value {
                Some(value) => drop(rows.insert(key, value)),
                None => drop(rows.remove(&key)),
            }
        }
        Ok(rows.into_iter().take(limit).collect())
    }

    /// Writes a row, for this call only until it is committed.
    pub fn put(&self, table: Table, key: impl Into<String>, value: Value) {
        self.lock().written.insert((table, key.into()), Some(value));
    }

    /// Writes a row that may be forgotten after a time, likewise.
    pub fn put_until(&self, table: Table, key: impl Into<String>, value: Value, expires_ms: u64) {
        let key = key.into();
        self.lock().expiry.insert((table, key.clone()), expires_ms);
        self.put(table, key, value);
    }

    /// Deletes a row, likewise.
    pub fn delete(&self, table: Table, key: impl Into<String>) {
        self.lock().written.insert((table, key.into()), None);
    }

    /// What the call wants changed, with what it relied on. The view is empty afterwards.
    pub fn take(&self) -> Commit {
        let Changes { read, written, expiry } = std::mem::take(&mut *self.lock());
        let mut commit = Commit::default();
        if written.is_empty() {
            return commit;
        }
        for ((table, key), version) in read {
            commit = commit.check(table, key, version);
        }
        for ((table, key), value) in written {
            commit = match value {
                Some(value) => {
                    let expires_ms = expiry.get(&(table, key.clone())).copied();
                    commit.put_until(table, key, value, expires_ms)
                }
                None => commit.delete(table, key),
            };
        }
        commit
    }

    /// What this call wrote under a prefix.
    fn written(&self, table: Table, prefix: &str) -> Vec<(String, Option<Value>)> {
        let from = Bound::Included((table, prefix.to_owned()));
        self.lock()
            .written
            .range((from, Bound::Unbounded))
            .take_while(|((of, key), _)| *of == table && key.starts_with(prefix))
            .map(|((_, key), value)| (key.clone(), value.clone()))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
