//! Building a base whose vectors are kept as they are made.

use std::collections::HashMap;
use std::sync::Arc;

use quarterdeck_contracts::{Embedder, EmbeddingModel, KnowledgeRecord};

use super::{pack, unpack};
use crate::base::KnowledgeBase;
use crate::search::ScoreThresholds;
use crate::snapshot::{BuildError, BuildObserver, KnownVectors, Progress};
use crate::vectors::{Key, PackedVector, Rows};

/// [`KnowledgeBase::build`], with every new vector handed to `keep`, packed, a few at a time: an interrupted build need not
/// make them again. What `keep` says ends the build.
pub fn build_keeping(
    records: Vec<KnowledgeRecord>,
    embedder: Option<Arc<dyn Embedder>>,
    known: Option<&KnownVectors>,
    thresholds: ScoreThresholds,
    progress: &mut dyn FnMut(Progress),
    keep: &mut dyn FnMut(Vec<PackedVector>) -> Result<(), String>,
) -> Result<KnowledgeBase, BuildError> {
    let mut observer = BuildObserver {
        progress,
        keep: &mut |fresh| {
            let packed = fresh.iter().map(|(key, bytes, scale)| (*key, pack(key, bytes, *scale)));
            keep(packed.collect()).map_err(BuildError::Keep)
        },
    };
    KnowledgeBase::build_observed(records, embedder, known, thresholds, &mut observer)
}

impl KnownVectors {
    /// None yet.
    pub fn new(model: EmbeddingModel) -> Self {
        let rows = Rows::zeroed(model.dimension, 0);
        Self { model, rows, at: HashMap::new() }
    }

    /// Takes a packed vector. `false` if it is not what was packed.
    #[must_use]
    pub fn put(&mut self, key: Key, packed: &[u8]) -> bool {
        let mut bytes = Vec::with_capacity(self.model.dimension);
        let Some(scale) = unpack(&key, packed, self.model.dimension, &mut bytes) else { return false };
        self.at.insert(key, self.rows.len());
        self.rows.push(&bytes, scale);
        true
    }
}
