//! A store without a file.

use std::collections::BTreeMap;
use std::future::ready;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{
    Change, Changes, Check, Commit, CommitError, Row, Scan, Store, StoreError, Table, Taken, Write,
};

use crate::changes::LocalChanges;
use crate::limits::check_limits;

/// Rows in memory. Every commit is applied before the call that makes it returns.
#[derive(Default)]
pub struct MemoryStore {
    rows: Mutex<Rows>,
    changes: LocalChanges,
}

#[derive(Default)]
struct Rows {
    tables: [BTreeMap<String, MemoryRow>; Table::ALL.len()],
    /// Of the last commit.
    version: u64,
}

/// The value is text: a parsed one takes several times the memory, and most rows are never read again.
struct MemoryRow {
    text: Box<str>,
    version: u64,
    expires_ms: Option<u64>,
}

impl MemoryRow {
    fn row(&self) -> Row {
        // It was written from a value.
        let value = serde_json::from_str(&self.text).unwrap_or_default();
        Row { value, version: self.version }
    }
}

impl MemoryStore {
    pub fn new() -> Self {
        Self::default()
    }

    /// No step of a commit can panic between two writes, so what a poisoned lock guards is whole.
    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn apply(&self, commit: Commit) -> Result<u64, CommitError> {
        check_limits(&commit)?;
        self.rows().apply(commit)
    }
}

impl Rows {
    fn table(&self, table: Table) -> &BTreeMap<String, MemoryRow> {
        &self.tables[table as usize]
    }

    fn apply(&mut self, mut commit: Commit) -> Result<u64, CommitError> {
        for Check { table, key, version } in commit.checks {
            if self.table(table).get(&key).map(|row| row.version) != version {
                return Err(CommitError::Conflict { table, key });
            }
        }
        for take in commit.takes {
            let stored = self.table(Table::Rates).get(&take.key).map(|row| row.row().value);
            match take.count_in(stored, take.now_ms) {
                Taken::Counted { window, expires_ms } => commit.writes.push(Write {
                    table: Table::Rates,
                    key: take.key,
                    value: Some(window),
                    expires_ms: Some(expires_ms),
                }),
                Taken::Refused { retry_after_ms } => {
                    return Err(CommitError::Exhausted { key: take.key, retry_after_ms });
                }
            }
        }
        if commit.writes.is_empty() {
            return Ok(0);
        }
        self.version += 1;
        for write in commit.writes {
            let table = &mut self.tables[write.table as usize];
            match write.value {
                Some(value) => {
                    let text = value.to_string().into_boxed_str();
                    table.insert(
                        write.key,
                        MemoryRow { text, version: self.version, expires_ms: write.expires_ms },
                    );
                }
                None => drop(table.remove(&write.key)),
            }
        }
        Ok(self.version)
    }

    fn scan(&self, table: Table, scan: &Scan) -> Vec<(String, Row)> {
        let from = match &scan.after {
            Some(after) if *after >= scan.prefix => Bound::Excluded(after.as_str()),
            _ => Bound::Included(scan.prefix.as_str()),
        };
        self.table(table)
            .range::<str, _>((from, Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(&scan.prefix))
            .take(scan.limit)
            .map(|(key, row)| (key.clone(), row.row()))
            .collect()
    }

    fn sweep(&mut self, now_ms: u64) -> u64 {
        let mut removed = 0;
        for table in &mut self.tables {
            let before = table.len();
            table.retain(|_, row| row.expires_ms.is_none_or(|at| at > now_ms));
            removed += before - table.len();
        }
        removed as u64
    }
}

impl Store for MemoryStore {
    fn get(&self, table: Table, key: &str) -> BoxFuture<Result<Option<Row>, StoreError>> {
        let row = self.rows().table(table).get(key).map(MemoryRow::row);
        Box::pin(ready(Ok(row)))
    }

    fn scan(&self, table: Table, scan: Scan) -> BoxFuture<Result<Vec<(String, Row)>, StoreError>> {
        let rows = self.rows().scan(table, &scan);
        Box::pin(ready(Ok(rows)))
    }

    fn commit(&self, commit: Commit) -> BoxFuture<Result<u64, CommitError>> {
        Box::pin(ready(self.apply(commit)))
    }

    fn queue(&self, commit: Commit) -> Result<(), StoreError> {
        match self.apply(commit) {
            Ok(_) | Err(CommitError::Conflict { .. } | CommitError::Exhausted { .. }) => Ok(()),
            Err(error) => Err(error.into_store_error()),
        }
    }

    fn flush(&self) -> BoxFuture<Result<(), StoreError>> {
        Box::pin(ready(Ok(())))
    }

    fn notify(&self, change: Change) {
        self.changes.notify(change);
    }

    fn watch(&self) -> Changes {
        self.changes.watch()
    }

    fn sweep(&self, now_ms: u64) -> BoxFuture<Result<u64, StoreError>> {
        let removed = self.rows().sweep(now_ms);
        Box::pin(ready(Ok(removed)))
    }
}
