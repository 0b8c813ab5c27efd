//! Encrypts rows that hold what users have said, in front of any engine.
//!
//! An engine, its log, its backups and its copies see ids, times and ciphertext. Which rows these are is decided here, by
//! table, so that no writer can forget it. A row is bound to its place: one that is copied to another key does not open.

mod keys;

use std::path::Path;
use std::sync::Arc;

use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{
    Change, Changes, Commit, CommitError, Row, Scan, Store, StoreError, StoreHealth, Table,
};
use serde_json::{Map, Value, json};

use crate::limits::check_limits;

pub use keys::{KEY_BYTES, NotAKey, SealingKey, SealingKeys};

/// The field of a row that is encrypted. No row of ours has one of that name.
const SEALED_FIELD: &str = "quarterdeck:sealed";
/// What stays readable of a row that is encrypted as a whole: erasure must find a client's rows without the key.
const CLEAR_FIELDS: [&str; 2] = ["clientId", "sessionId"];
/// Which keys a store was written with, so that a server that lacks one says so when it starts. A copy of the store has
/// these rows too.
const KEY_PREFIX: &str = "secret/sealing-key/";
const MAX_KEYS: usize = 1_000;

/// How much of a table's rows is encrypted.
#[derive(Debug, Clone, Copy)]
enum Sealed {
    Nothing,
    Whole,
    /// What these JSON pointers lead to; the rest is needed without the key, by lists and by other nodes.
    Parts(&'static [&'static str]),
}

fn sealed_part(table: Table) -> Sealed {
    match table {
        Table::History | Table::Calls | Table::Confirmations | Table::Tasks | Table::Values => Sealed::Whole,
        Table::Sessions => Sealed::Parts(&["/notes", "/state/pendingEndVoiceSession"]),
        Table::Leases => Sealed::Parts(&["/turn"]),
        _ => Sealed::Nothing,
    }
}

/// A store whose rows of conversations are encrypted, where there is a key. Rows from before there was one stay readable.
pub struct SealedStore {
    engine: Arc<dyn Store>,
    keys: Arc<SealingKeys>,
}

impl SealedStore {
    /// Reads and writes with these keys. A row that needs another one is an error when it is read.
    pub fn new(engine: Arc<dyn Store>, keys: SealingKeys) -> Self {
        Self { engine, keys: Arc::new(keys) }
    }

    /// The same for a server: refuses a store that was written with a key that is not among these.
    pub async fn open(engine: Arc<dyn Store>, keys: SealingKeys) -> Result<Self, StoreError> {
        let used = engine.scan(Table::Nodes, Scan::prefix(KEY_PREFIX, MAX_KEYS)).await?;
        let used: Vec<&str> = used.iter().filter_map(|(key, _)| key.strip_prefix(KEY_PREFIX)).collect();
        if let Some(missing) = used.iter().find(|id| keys.find(id).is_none()) {
            return Err(StoreError::Failed(missing_key(missing, &keys)));
        }
        if let Some(key) = keys.current().filter(|key| !used.contains(&key.id())) {
            let row = Commit::default().put(Table::Nodes, format!("{KEY_PREFIX}{}", key.id()), json!({}));
            engine.commit(row).await.map_err(CommitError::into_store_error)?;
        }
        Ok(Self::new(engine, keys))
    }

    fn seal(&self, mut commit: Commit) -> Result<Commit, StoreError> {
        let Some(key) = self.keys.current() else { return Ok(commit) };
        // The engine would see a text where a value nests too deep to be parsed again.
        check_limits(&commit)?;
        for write in &mut commit.writes {
            if let Some(value) = &mut write.value {
                seal_value(key, write.table, &write.key, value)?;
            }
        }
        Ok(commit)
    }
}

fn seal_value(key: &SealingKey, table: Table, place: &str, value: &mut Value) -> Result<(), StoreError> {
    let (plain, mut row) = match sealed_part(table) {
        Sealed::Nothing => return Ok(()),
        Sealed::Whole => {
            let clear = |name: &str| Some((name.to_owned(), value.get(name)?.as_str()?.into()));
            let row: Map<String, Value> = CLEAR_FIELDS.into_iter().filter_map(clear).collect();
            (value.to_string(), row)
        }
        Sealed::Parts(pointers) => {
            let parts = take_parts(value, pointers);
            match value.as_object_mut() {
                Some(row) if !parts.is_empty() => (Value::Object(parts).to_string(), std::mem::take(row)),
                _ => return Ok(()),
            }
        }
    };
    let data = key.seal(&binding(table, place), plain);
    let data =
        data.ok_or_else(|| StoreError::Failed("there are no random numbers to encrypt with".into()))?;
    row.insert(SEALED_FIELD.into(), json!({ "key": key.id(), "data": data }));
    *value = Value::Object(row);
    Ok(())
}

/// Takes what is there out of a row.
fn take_parts(value: &mut Value, pointers: &[&str]) -> Map<String, Value> {
    let mut parts = Map::new();
    for pointer in pointers {
        let Some(part) = value.pointer_mut(pointer) else { continue };
        let blank = match part {
            Value::Null => continue,
            Value::Array(items) if items.is_empty() => continue,
            Value::Array(_) => json!([]),
            _ => Value::Null,
        };
        parts.insert((*pointer).to_owned(), std::mem::replace(part, blank));
    }
    parts
}

fn open_value(keys: &SealingKeys, table: Table, place: &str, value: &mut Value) -> Result<(), StoreError> {
    let part = sealed_part(table);
    let Some(sealed) = value.as_object_mut().and_then(|row| row.remove(SEALED_FIELD)) else { return Ok(()) };
    if matches!(part, Sealed::Nothing) {
        return Ok(());
    }
    let id = sealed["key"].as_str().unwrap_or_default();
    let Some(key) = keys.find(id) else {
        return match part {
            // The rest of the row is whole without it.
            Sealed::Parts(_) => Ok(()),
            _ => Err(StoreError::Failed(missing_key(id, keys))),
        };
    };
    let plain = key.open(&binding(table, place), sealed["data"].as_str().unwrap_or_default());
    let plain: Option<Value> = plain.and_then(|plain| serde_json::from_slice(&plain).ok());
    let Some(plain) = plain else {
        let damage =
            format!("{}/{place} was changed since it was encrypted, and does not open", table.as_str());
        return Err(StoreError::Failed(damage));
    };
    match (part, plain) {
        (Sealed::Parts(_), Value::Object(parts)) => {
            for (pointer, part) in parts {
                if let Some(blank) = value.pointer_mut(&pointer) {
                    *blank = part;
                }
            }
        }
        (_, plain) => *value = plain,
    }
    Ok(())
}

/// What a sealed row is bound to. No name of a table has a slash.
fn binding(table: Table, key: &str) -> Vec<u8> {
    format!("{}/{key}", table.as_str()).into_bytes()
}

fn missing_key(id: &str, keys: &SealingKeys) -> String {
    let have = match keys.current() {
        Some(current) => format!("the configured key is {}", current.id()),
        None => "no key is configured".to_owned(),
    };
    format!(
        "conversations in it are encrypted with the key {id}, and {have}; set QUARTERDECK_TRANSCRIPTS__KEY to that key, or \
         add it to QUARTERDECK_TRANSCRIPTS__PREVIOUS_KEYS"
    )
}

impl Store for SealedStore {
    fn get(&self, table: Table, key: &str) -> BoxFuture<Result<Option<Row>, StoreError>> {
        let (row, keys, key) = (self.engine.get(table, key), self.keys.clone(), key.to_owned());
        Box::pin(async move {
            let Some(mut row) = row.await? else { return Ok(None) };
            open_value(&keys, table, &key, &mut row.value)?;
            Ok(Some(row))
        })
    }

    fn scan(&self, table: Table, scan: Scan) -> BoxFuture<Result<Vec<(String, Row)>, StoreError>> {
        let (rows, keys) = (self.engine.scan(table, scan), self.keys.clone());
        Box::pin(async move {
            let mut rows = rows.await?;
            for (key, row) in &mut rows {
                open_value(&keys, table, key, &mut row.value)?;
            }
            Ok(rows)
        })
    }

    fn commit(&self, commit: Commit) -> BoxFuture<Result<u64, CommitError>> {
        match self.seal(commit) {
            Ok(commit) => self.engine.commit(commit),
            Err(error) => Box::pin(std::future::ready(Err(error.into()))),
        }
    }

    fn queue(&self, commit: Commit) -> Result<(), StoreError> {
        self.engine.queue(self.seal(commit)?)
    }

    fn flush(&self) -> BoxFuture<Result<(), StoreError>> {
        self.engine.flush()
    }

    fn sweep(&self, now_ms: u64) -> BoxFuture<Result<u64, StoreError>> {
        self.engine.sweep(now_ms)
    }

    fn backup(&self, to: &Path) -> BoxFuture<Result<(), StoreError>> {
        self.engine.backup(to)
    }

    fn notify(&self, change: Change) {
        self.engine.notify(change);
    }

    fn watch(&self) -> Changes {
        self.engine.watch()
    }

    fn health(&self) -> Option<StoreHealth> {
        self.engine.health()
    }

    fn is_shared(&self) -> bool {
        self.engine.is_shared()
    }

    fn close(&self) -> BoxFuture<Result<(), StoreError>> {
        self.engine.close()
    }
}
