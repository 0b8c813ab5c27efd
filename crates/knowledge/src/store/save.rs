//! Saving: what did not change is not written.

use std::collections::HashMap;

use quarterdeck_contracts::{KnowledgeRecord, sha256};
use rusqlite::params;

use super::{FileError, KnowledgeFile};
use crate::snapshot::KnownVectors;

/// What a save came to, in records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// New ids.
    pub added: usize,
    /// Known ids with other content.
    pub changed: usize,
    /// Ids that are gone.
    pub removed: usize,
    /// The rest.
    pub unchanged: usize,
}

impl KnowledgeFile {
    /// Makes the file hold these records and vectors, all or nothing. Without vectors those in the file stay; with them
    /// only they do.
    pub fn save(
        &mut self,
        records: &[KnowledgeRecord],
        vectors: Option<&KnownVectors>,
    ) -> Result<Changes, FileError> {
        let transaction = self.connection.transaction()?;
        let mut changes = Changes::default();
        {
            let mut old: HashMap<String, String> = transaction
                .prepare("SELECT id, hash FROM records")?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<Result<_, _>>()?;
            let mut put = transaction.prepare(
                "INSERT INTO records (id, hash, body) VALUES (?1, ?2, ?3)
                 ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, body = excluded.body",
            )?;
            for record in records {
                // A record holds nothing that JSON cannot say.
                let body = serde_json::to_string(record).unwrap_or_default();
                let hash = sha256(body.as_bytes());
                match old.remove(&record.id) {
                    Some(same) if same == hash => {
                        changes.unchanged += 1;
                        continue;
                    }
                    Some(_) => changes.changed += 1,
                    None => changes.added += 1,
                }
                put.execute(params![record.id, hash, body])?;
            }
            let mut delete = transaction.prepare("DELETE FROM records WHERE id = ?1")?;
            for id in old.keys() {
                changes.removed += delete.execute([id])?;
            }
            if let Some(known) = vectors {
                save_vectors(&transaction, known)?;
            }
        }
        transaction.commit()?;
        Ok(changes)
    }
}

fn save_vectors(transaction: &rusqlite::Transaction<'_>, known: &KnownVectors) -> Result<(), FileError> {
    let digest = &known.model.digest;
    transaction.execute("DELETE FROM vectors WHERE model <> ?1", [digest])?;
    let old: Vec<String> = transaction
        .prepare("SELECT key FROM vectors WHERE model = ?1")?
        .query_map([digest], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut delete = transaction.prepare("DELETE FROM vectors WHERE model = ?1 AND key = ?2")?;
    for key in old.iter().filter(|key| !known.vectors.contains_key(*key)) {
        delete.execute(params![digest, key])?;
    }
    let mut put = transaction.prepare(
        "INSERT INTO vectors (model, dimension, key, vector) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (model, key) DO NOTHING",
    )?;
    for (key, vector) in &known.vectors {
        let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
        put.execute(params![digest, known.model.dimension as i64, key, bytes])?;
    }
    Ok(())
}
