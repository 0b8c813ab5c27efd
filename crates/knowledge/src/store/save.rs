//! Saving: all or nothing, and what did not change is not written.

use std::collections::{BTreeSet, HashMap};

use rusqlite::{Transaction, params};
use sha2::{Digest, Sha256};

use super::{FileError, KnowledgeFile, vectors};
use crate::base::KnowledgeBase;
use crate::index::{Doc, Records};
use crate::saved::digest::bind_digest;
use crate::saved::{Changes, PassageList, RecordsDigest, Sources, hash_of};
use crate::vectors::{Key, VectorStorage, Vectors};

/// SQLite has a limit for one value, and takes as much memory again for it.
const MAX_PIECE_BYTES: usize = 1024 * 1024;

impl KnowledgeFile {
    /// Makes the file hold this base, all or nothing. Without vectors those in the file stay, for a later build; with
    /// them only they do.
    pub fn save(&mut self, base: &KnowledgeBase, sources: &Sources) -> Result<Changes, FileError> {
        let snapshot = base.current();
        let transaction = self.connection.transaction()?;
        let (changes, records_digest) = save_records(&transaction, &snapshot.index.records)?;
        save_part(&transaction, "index", &records_digest, &snapshot.index.to_bytes())?;
        match snapshot.vectors.as_ref().and_then(VectorStorage::in_memory) {
            Some(vectors) => {
                save_vectors(&transaction, vectors)?;
                save_part(&transaction, "passages", &records_digest, &PassageList::write(vectors))?;
            }
            None => {
                transaction.execute("DELETE FROM parts WHERE name = 'passages'", [])?;
            }
        }
        transaction.execute("DELETE FROM sources", [])?;
        let left_out = i64::try_from(sources.left_out).unwrap_or(i64::MAX);
        transaction.execute(
            "INSERT INTO sources (fingerprint, left_out) VALUES (?1, ?2)",
            params![sources.fingerprint, left_out],
        )?;
        transaction.commit()?;
        Ok(changes)
    }
}

fn save_records(transaction: &Transaction<'_>, records: &Records) -> Result<(Changes, [u8; 32]), FileError> {
    let mut changes = Changes::default();
    let mut records_digest = RecordsDigest::default();
    let mut old: HashMap<String, String> = transaction
        .prepare("SELECT id, hash FROM records")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    let mut put = transaction.prepare(
        "INSERT INTO records (id, hash, body) VALUES (?1, ?2, ?3)
         ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, body = excluded.body",
    )?;
    for (id, doc) in records.ids().zip(0_u32..) {
        let body = records.body(doc as Doc);
        let hash = hash_of(body);
        records_digest.add(&hash);
        match old.remove(id) {
            Some(same) if same == hash => {
                changes.unchanged += 1;
                continue;
            }
            Some(_) => changes.changed += 1,
            None => changes.added += 1,
        }
        put.execute(params![id, hash, body])?;
    }
    let mut delete = transaction.prepare("DELETE FROM records WHERE id = ?1")?;
    for id in old.keys() {
        changes.removed += delete.execute([id])?;
    }
    Ok((changes, records_digest.finish()))
}

fn save_part(
    transaction: &Transaction<'_>,
    name: &str,
    records_digest: &[u8; 32],
    content: &[u8],
) -> Result<(), FileError> {
    transaction.execute("DELETE FROM parts WHERE name = ?1", [name])?;
    let mut put = transaction.prepare("INSERT INTO parts (name, number, bytes) VALUES (?1, ?2, ?3)")?;
    put.execute(params![name, 0, &bind_digest(records_digest, &Sha256::digest(content).into())[..]])?;
    for (piece, number) in content.chunks(MAX_PIECE_BYTES).zip(1_i64..) {
        put.execute(params![name, number, piece])?;
    }
    Ok(())
}

fn save_vectors(transaction: &Transaction<'_>, all: &Vectors) -> Result<(), FileError> {
    let digest = &all.model.digest;
    transaction.execute("DELETE FROM vectors WHERE model <> ?1", [digest])?;
    let wanted: BTreeSet<&Key> = all.keys.iter().collect();
    let old: Vec<Vec<u8>> = transaction
        .prepare("SELECT key FROM vectors WHERE model = ?1")?
        .query_map([digest], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut delete = transaction.prepare("DELETE FROM vectors WHERE model = ?1 AND key = ?2")?;
    let is_wanted = |key: &&Vec<u8>| Key::try_from(&key[..]).is_ok_and(|key| wanted.contains(&key));
    for key in old.iter().filter(|key| !is_wanted(key)) {
        delete.execute(params![digest, key])?;
    }
    let stored: BTreeSet<Key> = old.iter().filter_map(|key| Key::try_from(&key[..]).ok()).collect();
    let missing = all.keys.iter().enumerate().filter(|(_, key)| !stored.contains(*key));
    let missing: Vec<_> = missing
        .map(|(row, key)| {
            let (bytes, scale) = all.rows.get(row);
            (*key, bytes, scale)
        })
        .collect();
    Ok(vectors::put(transaction, &all.model, &missing)?)
}
