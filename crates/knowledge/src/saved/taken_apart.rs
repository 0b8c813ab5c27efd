//! A finished base, taken apart.

use std::sync::Arc;

use quarterdeck_contracts::EmbeddingModel;

use super::{PassageList, pack};
use crate::base::KnowledgeBase;
use crate::index::Doc;
use crate::snapshot::Snapshot;
use crate::vectors::{Key, Vectors};

/// What is to be kept of a base. Vectors that are kept elsewhere already are not in it.
pub struct SavedBase(Arc<Snapshot>);

impl KnowledgeBase {
    pub fn saved(&self) -> SavedBase {
        SavedBase(self.current())
    }
}

impl SavedBase {
    /// Ids and JSON, in the order of ids.
    pub fn records(&self) -> impl Iterator<Item = (&str, &str)> {
        let records = &self.0.index.records;
        (0..records.len() as Doc).map(|doc| (records.id(doc), records.body(doc)))
    }

    /// Everything of the index but the records.
    pub fn index(&self) -> Vec<u8> {
        self.0.index.to_bytes()
    }

    pub fn model(&self) -> Option<&EmbeddingModel> {
        self.vectors().map(|vectors| &vectors.model)
    }

    /// What [`PassageList::read`] reads.
    pub fn passages(&self) -> Option<Vec<u8>> {
        self.vectors().map(PassageList::write)
    }

    /// By passage: the key of its vector.
    pub fn keys(&self) -> &[Key] {
        self.vectors().map_or(&[], |vectors| &vectors.keys)
    }

    /// The vector of a passage, by its place in [`Self::keys`].
    pub fn packed_vector(&self, passage: usize) -> Vec<u8> {
        self.vectors().map_or_else(Vec::new, |vectors| {
            let (bytes, scale) = vectors.rows.get(passage);
            pack(&vectors.keys[passage], bytes, scale)
        })
    }

    fn vectors(&self) -> Option<&Vectors> {
        self.0.vectors.as_ref().and_then(|vectors| vectors.in_memory())
    }
}
