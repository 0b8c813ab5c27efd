//! What was derived from the records: the index and the vectors of their passages.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, params};
use sha2::{Digest, Sha256};

use super::{FileError, KnowledgeFile};
use crate::index::Parts;
use crate::saved::digest::bind_digest;
use crate::saved::{PassageList, VectorReader};
use crate::vectors::Vectors;

/// Read and decoded, but not yet known to be of the records at hand.
pub(super) struct Derived {
    index: Option<(PartDigest, Parts)>,
    vectors: Option<(PartDigest, Vectors)>,
}

/// Ties a part to the records it was derived from: the digest of its content, and the one that was stored with it.
struct PartDigest {
    content: [u8; 32],
    stored: Vec<u8>,
}

impl PartDigest {
    fn matches(&self, records_digest: &[u8; 32]) -> bool {
        bind_digest(records_digest, &self.content)[..] == self.stored[..]
    }
}

impl Derived {
    /// Reads it on a connection of its own, so that another thread can read the records meanwhile.
    pub(super) fn read(path: &Path) -> Result<Self, FileError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        let file = KnowledgeFile { path: path.to_owned(), connection };
        let transaction = file.connection.unchecked_transaction()?;
        let index = file.part("index")?.and_then(|(digest, bytes)| Some((digest, Parts::read(&bytes)?)));
        let vectors = match file.part("passages")? {
            Some((digest, bytes)) => file.passages(&bytes)?.map(|vectors| (digest, vectors)),
            None => None,
        };
        transaction.finish()?;
        Ok(Self { index, vectors })
    }

    /// Whether all of it that is there was derived from records with this digest.
    pub(super) fn belongs_to(&self, records_digest: &[u8; 32]) -> bool {
        self.index.as_ref().is_some_and(|(digest, _)| digest.matches(records_digest))
            && self.vectors.as_ref().is_none_or(|(digest, _)| digest.matches(records_digest))
    }

    /// What was derived from records with this digest.
    pub(super) fn into_parts(self, records_digest: &[u8; 32]) -> (Option<Parts>, Option<Vectors>) {
        let index = self.index.filter(|(digest, _)| digest.matches(records_digest)).map(|(_, parts)| parts);
        let vectors =
            self.vectors.filter(|(digest, _)| digest.matches(records_digest)).map(|(_, vectors)| vectors);
        (index, vectors)
    }
}

impl KnowledgeFile {
    fn part(&self, name: &str) -> Result<Option<(PartDigest, Vec<u8>)>, FileError> {
        let size = "SELECT ifnull(sum(octet_length(bytes)), 0) FROM parts WHERE name = ?1 AND number > 0";
        let size: i64 = self.connection.query_row(size, [name], |row| row.get(0))?;
        // What is left of a larger piece of memory would stay with the process.
        let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        let mut stored = Vec::new();
        let mut statement =
            self.connection.prepare("SELECT number, bytes FROM parts WHERE name = ?1 ORDER BY number")?;
        let mut rows = statement.query(params![name])?;
        while let Some(row) = rows.next()? {
            let piece = row.get_ref(1)?.as_blob().unwrap_or_default();
            match row.get::<_, i64>(0)? {
                0 => stored.extend_from_slice(piece),
                _ => content.extend_from_slice(piece),
            }
        }
        let is_there = !stored.is_empty();
        Ok(is_there.then(|| (PartDigest { content: Sha256::digest(&content).into(), stored }, content)))
    }

    /// The vectors of the passages; `None` if some are not there any more.
    fn passages(&self, bytes: &[u8]) -> Result<Option<Vectors>, FileError> {
        let Some(list) = PassageList::read(bytes) else { return Ok(None) };
        let model = list.model.clone();
        let mut reader = VectorReader::new(list);
        self.each_vector(&model, |key, bytes, scale| reader.set(key, bytes, scale))?;
        Ok(reader.finish())
    }
}
