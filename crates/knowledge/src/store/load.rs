//! Loading: a finished base from its file, without building anything.

use std::thread;

use rusqlite::OptionalExtension;

use super::derived::Derived;
use super::{FileError, KnowledgeFile, Sources};
use crate::base::{KnowledgeBase, LoadedBase};
use crate::index::Records;
use crate::saved::read::index_of;
use crate::saved::{RecordsDigest, hash_of};
use crate::search::ScoreThresholds;
use crate::snapshot::Snapshot;
use crate::vectors::VectorStorage;

impl KnowledgeFile {
    /// The base that was saved last; `None` when nothing ever was. A record whose content is not what its hash says is
    /// damage.
    pub fn load(&self, thresholds: ScoreThresholds) -> Result<Option<LoadedBase>, FileError> {
        if self.sources()?.is_none() {
            return Ok(None);
        }
        let (mut parts, mut records_digest) = self.read_parts()?;
        // A build may have finished between the two reads: then the next two belong together.
        if !parts.1.belongs_to(&records_digest) {
            (parts, records_digest) = self.read_parts()?;
        }
        let (records, derived) = parts;
        let count = records.len();
        let (parts, vectors) = derived.into_parts(&records_digest);
        let (index, is_rebuilt) =
            index_of(parts, records).map_err(|error| self.damaged(&error.to_string()))?;
        let vectors = vectors.filter(|vectors| vectors.starts.len() == count + 1).map(VectorStorage::Memory);
        Ok(Some(LoadedBase {
            base: KnowledgeBase::from_snapshot(Snapshot { index, vectors }, thresholds),
            is_rebuilt,
        }))
    }

    /// The records on this thread, and what was derived from them on another: each is half of the time.
    fn read_parts(&self) -> Result<((Records, Derived), [u8; 32]), FileError> {
        let path = self.path.as_path();
        let (records, derived) = thread::scope(|scope| {
            let work = move || Derived::read(path);
            let other = thread::Builder::new().name("knowledge-load".to_owned()).spawn_scoped(scope, work);
            let records = self.records();
            let derived = other.ok().and_then(|other| other.join().ok());
            // Whatever a thread could not do is done here.
            (records, derived.unwrap_or_else(|| Derived::read(path)))
        });
        let (records, records_digest) = records?;
        Ok(((records, derived?), records_digest))
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
        let mut records_digest = RecordsDigest::default();
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
            records_digest.add(hash);
            records.push(id, body);
            last.clear();
            last.push_str(id);
        }
        Ok((records, records_digest.finish()))
    }
}
