//! A base from its parts, without building anything.

use std::sync::Arc;

use quarterdeck_contracts::KnowledgeRecord;

use super::{Part, PassageList, RecordsDigest, VectorReader, hash_of};
use crate::base::{KnowledgeBase, LoadedBase};
use crate::index::{Index, Parts, Records};
use crate::search::ScoreThresholds;
use crate::snapshot::Snapshot;
use crate::vectors::{RemoteVectors, VectorSource, VectorStorage};

/// Takes records in the order of their ids.
pub struct BaseReader {
    records: Records,
    digest: RecordsDigest,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the record `{0}` does not have the content that was stored")]
pub struct DamagedRecord(pub String);

/// Where the vectors of a base are.
pub enum LoadedVectors {
    /// Searched by words.
    None,
    /// In this process.
    InMemory(VectorReader),
    /// Elsewhere, where they are compared as well.
    Elsewhere(PassageList, Arc<dyn VectorSource>),
}

impl BaseReader {
    /// Room for so many records of so many bytes in all.
    pub fn with_capacity(records: usize, bytes: usize) -> Self {
        Self { records: Records::with_capacity(records, bytes), digest: RecordsDigest::default() }
    }

    pub fn record(&mut self, id: &str, hash: &str, body: &str) -> Result<(), DamagedRecord> {
        let count = self.records.len();
        let is_next = count == 0 || self.records.id((count - 1) as u32) < id;
        if !is_next || hash_of(body) != hash {
            return Err(DamagedRecord(id.to_owned()));
        }
        self.digest.add(hash);
        self.records.push(id, body);
        Ok(())
    }

    /// The base, once every record is in. An index that is of other records or was damaged is built again; vectors of
    /// other records are left out.
    pub fn finish(
        self,
        index: Option<Part>,
        passages: Option<&Part>,
        vectors: LoadedVectors,
        thresholds: ScoreThresholds,
    ) -> Result<LoadedBase, DamagedRecord> {
        let digest = self.digest.finish();
        let count = self.records.len();
        let parts = index.filter(|part| part.belongs_to(&digest)).and_then(|part| Parts::read(&part.content));
        let (index, is_rebuilt) = index_of(parts, self.records)?;
        let vectors = match vectors {
            _ if !passages.is_some_and(|part| part.belongs_to(&digest)) => None,
            LoadedVectors::None => None,
            LoadedVectors::InMemory(reader) => reader.finish().map(VectorStorage::Memory),
            LoadedVectors::Elsewhere(list, source) => {
                Some(VectorStorage::Remote(RemoteVectors::new(list.model, list.starts, list.keys, source)))
            }
        };
        let vectors = vectors.filter(|vectors| vectors.records() == count);
        let base = KnowledgeBase::from_snapshot(Snapshot { index, vectors }, thresholds);
        Ok(LoadedBase { base, is_rebuilt })
    }
}

/// The index of these records, and whether it had to be built from nothing else.
pub(crate) fn index_of(parts: Option<Parts>, records: Records) -> Result<(Index, bool), DamagedRecord> {
    let found = match parts {
        Some(parts) => parts.index(records),
        None => Err(records),
    };
    let records = match found {
        Ok(index) => return Ok((index, false)),
        Err(records) => records,
    };
    let all = 0..u32::try_from(records.len()).unwrap_or_default();
    let read = |doc| records.get(doc).map_err(|_| DamagedRecord(records.id(doc).to_owned()));
    let read: Result<Vec<KnowledgeRecord>, _> = all.map(read).collect();
    Ok((Index::new(read?), true))
}
