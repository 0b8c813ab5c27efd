//! Loading: a finished base from its file, without building anything.

use quarterdeck_contracts::{EmbeddingModel, KnowledgeRecord};
use rusqlite::{OptionalExtension, params};
use sha2::{Digest, Sha256};

use super::{FileError, KnowledgeFile, Sources, Stamp, tied};
use crate::base::KnowledgeBase;
use crate::bytes::Reader;
use crate::index::{Index, Records};
use crate::search::Floor;
use crate::snapshot::Snapshot;
use crate::vectors::{Key, Rows, Vectors};

/// A base as it was saved.
pub struct Loaded {
    /// The base. It has no model yet: [`KnowledgeBase::use_model`] gives it one.
    pub base: KnowledgeBase,
    /// Whether the index had to be built again, because another version wrote it or it was damaged.
    pub is_rebuilt: bool,
}

impl KnowledgeFile {
    /// The base that was saved last; `None` when nothing ever was. A record whose content is not what its hash says is
    /// damage.
    pub fn load(&self, floor: Floor) -> Result<Option<Loaded>, FileError> {
        // One transaction: a build may be at work on the same file.
        let transaction = self.connection.unchecked_transaction()?;
        if self.sources()?.is_none() {
            return Ok(None);
        }
        let (records, stamp) = self.records()?;
        let (index, is_rebuilt) = match self.part("index", &stamp)? {
            None => (self.rebuilt(&records)?, true),
            Some(bytes) => match Index::from_bytes(records, &bytes) {
                Ok(index) => (index, false),
                Err(records) => (self.rebuilt(&records)?, true),
            },
        };
        let vectors = match self.part("passages", &stamp)? {
            Some(bytes) => self.passages(&bytes, index.records.len())?,
            None => None,
        };
        transaction.finish()?;
        Ok(Some(Loaded { base: KnowledgeBase::of(Snapshot { index, vectors }, floor), is_rebuilt }))
    }

    /// What the base was built from, if one was saved.
    pub fn sources(&self) -> Result<Option<Sources>, FileError> {
        let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?));
        let found =
            self.connection.query_row("SELECT fingerprint, left_out FROM sources", [], row).optional()?;
        Ok(found.map(|(fingerprint, left_out)| Sources {
            fingerprint,
            left_out: usize::try_from(left_out).unwrap_or_default(),
        }))
    }

    fn records(&self) -> Result<(Records, [u8; 32]), FileError> {
        let size = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        let sizes = "SELECT count(*), ifnull(sum(octet_length(body)), 0) FROM records";
        let (count, bytes) = self.connection.query_row(sizes, [], size)?;
        let count = usize::try_from(count).unwrap_or_default();
        let mut records = Records::with_capacity(count, usize::try_from(bytes).unwrap_or_default());
        let mut stamp = Stamp::default();
        let mut statement = self.connection.prepare("SELECT id, hash, body FROM records ORDER BY id")?;
        let mut rows = statement.query([])?;
        let mut last = String::new();
        while let Some(row) = rows.next()? {
            let text = |at| {
                row.get_ref(at)
                    .map_err(FileError::from)
                    .and_then(|value| value.as_str().map_err(|_| self.damaged("a record is not text")))
            };
            let (id, hash, body) = (text(0)?, text(1)?, text(2)?);
            if hash_of(body) != hash || (records.len() > 0 && id <= last.as_str()) {
                return Err(self.damaged("a record does not have the content that was stored"));
            }
            stamp.add(hash);
            records.push(id, body);
            last.clear();
            last.push_str(id);
        }
        Ok((records, stamp.finish()))
    }

    /// The index of records, built from nothing else.
    fn rebuilt(&self, records: &Records) -> Result<Index, FileError> {
        let all = 0..u32::try_from(records.len()).unwrap_or_default();
        let read: Result<Vec<KnowledgeRecord>, _> = all.map(|doc| records.get(doc)).collect();
        Ok(Index::new(read.map_err(|error| self.damaged(&error.to_string()))?))
    }

    /// Something derived, if it is whole and of these records.
    fn part(&self, name: &str, stamp: &[u8; 32]) -> Result<Option<Vec<u8>>, FileError> {
        let size = "SELECT ifnull(sum(octet_length(bytes)), 0) FROM parts WHERE name = ?1 AND number > 0";
        let size: i64 = self.connection.query_row(size, [name], |row| row.get(0))?;
        // What is left of a larger piece of memory would stay with the process.
        let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        let mut digest = Vec::new();
        let mut statement =
            self.connection.prepare("SELECT number, bytes FROM parts WHERE name = ?1 ORDER BY number")?;
        let mut rows = statement.query(params![name])?;
        while let Some(row) = rows.next()? {
            let piece = row.get_ref(1)?.as_blob().unwrap_or_default();
            match row.get::<_, i64>(0)? {
                0 => digest.extend_from_slice(piece),
                _ => content.extend_from_slice(piece),
            }
        }
        Ok((tied(stamp, &content)[..] == digest[..]).then_some(content))
    }

    /// The vectors of the passages; `None` if some are not there any more.
    fn passages(&self, bytes: &[u8], records: usize) -> Result<Option<Vectors>, FileError> {
        let Some((model, starts, keys)) = read_passages(bytes) else { return Ok(None) };
        let divides = starts.first() == Some(&0)
            && starts.is_sorted()
            && starts.len() == records + 1
            && starts.last().is_some_and(|last| *last as usize == keys.len());
        if !divides {
            return Ok(None);
        }
        // Passages that say the same share a key, and each has a row.
        let mut by_key: Vec<(Key, usize)> = keys.iter().copied().zip(0..).collect();
        by_key.sort_unstable();
        let mut rows = Rows::nothing(model.dimension, keys.len());
        let (mut next, mut filled) = (0, 0);
        self.each_vector(&model, |key, bytes, scale| {
            // Both are in the order of keys.
            while by_key.get(next).is_some_and(|(other, _)| *other < key) {
                next += 1;
            }
            while let Some((_, row)) = by_key.get(next).filter(|(other, _)| *other == key) {
                rows.set(*row, bytes, scale);
                next += 1;
                filled += 1;
            }
        })?;
        Ok((filled == keys.len()).then_some(Vectors { model, rows, starts, keys }))
    }
}

fn read_passages(bytes: &[u8]) -> Option<(EmbeddingModel, Vec<u32>, Vec<Key>)> {
    let mut from = Reader::new(bytes);
    let model = serde_json::from_slice(from.bytes()?).ok()?;
    let (starts, keys) = (from.list(u32::from_le_bytes)?, from.list(|key: Key| key)?);
    from.is_empty().then_some((model, starts, keys))
}

/// SHA-256 in hex.
pub(super) fn hash_of(body: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(body.as_bytes()) {
        hex.push(char::from(DIGITS[usize::from(byte >> 4)]));
        hex.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    hex
}
