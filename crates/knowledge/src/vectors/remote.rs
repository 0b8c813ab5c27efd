//! Vectors that another engine keeps and compares. What it finds is scored again here, with the vectors as they are, so
//! that a score means the same wherever it comes from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quarterdeck_contracts::EmbeddingModel;
use quarterdeck_contracts::handler::BoxFuture;

use super::{Key, PackedVector, dot};
use crate::index::{BitSet, Doc};
use crate::saved::unpack;

/// Passages that the engine is asked for at least.
const MIN_CANDIDATES: usize = 300;
/// Up to so many are scored here without asking what is near.
const MAX_SCORED_AT_ONCE: usize = 1_000;
/// Up to so many passages pass, every one of them is compared. Above, an index is asked, which may miss some.
const MAX_EXACT: usize = 20_000;
/// An index that must find more than this to find enough that pass is not asked.
const MAX_FROM_INDEX: usize = 40_000;
/// Passages of records that were found by words, to be scored by meaning too.
const MAX_LEXICAL_PASSAGES: usize = 4_000;
/// Records that must be found, if as many pass.
const MIN_RECORDS: usize = 50;

/// An engine that keeps the vectors of a base.
pub trait VectorSource: Send + Sync {
    /// The keys of the passages that are nearest to a question, about in their order.
    fn nearest(&self, question: Arc<[f32]>, scope: Scope) -> BoxFuture<Result<Vec<Key>, SourceError>>;

    /// Packed vectors by their keys, in any order. One that is not there any more is left out.
    fn fetch(&self, keys: Vec<Key>) -> BoxFuture<Result<Vec<PackedVector>, SourceError>>;
}

/// What is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// These, every one of them.
    Only { keys: Vec<Key>, limit: usize },
    /// Whatever an index finds among all.
    Index { limit: usize },
}

/// The engine cannot answer, and its implementation has logged why. The search goes on by words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceError;

/// Which passages there are, and who has their vectors.
pub(crate) struct RemoteVectors {
    pub(crate) model: EmbeddingModel,
    starts: Vec<u32>,
    keys: Vec<Key>,
    /// Places in `keys`, in the order of keys.
    by_key: Vec<u32>,
    source: Arc<dyn VectorSource>,
}

/// A record with the cosine of its nearest passage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Near {
    pub(crate) doc: Doc,
    pub(crate) cosine: f32,
    pub(crate) passage: usize,
}

impl RemoteVectors {
    pub(crate) fn new(
        model: EmbeddingModel,
        starts: Vec<u32>,
        keys: Vec<Key>,
        source: Arc<dyn VectorSource>,
    ) -> Self {
        let mut by_key: Vec<u32> = (0..keys.len() as u32).collect();
        by_key.sort_unstable_by_key(|row| keys[*row as usize]);
        Self { model, starts, keys, by_key, source }
    }

    pub(crate) fn records(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    pub(crate) fn passages(&self) -> usize {
        self.keys.len()
    }

    /// Records among those that pass that are near the question, and those of `lexical`, which pass as well. None is left
    /// out for lack of records: at least `2 * limit` are found if as many pass.
    pub(crate) async fn near(
        &self,
        question: &Arc<[f32]>,
        passing: &BitSet,
        lexical: &[Doc],
        limit: usize,
    ) -> Result<Vec<Near>, SourceError> {
        let mut rows = self.nearest_rows(question, passing, limit).await?;
        let most = rows.len() + MAX_LEXICAL_PASSAGES;
        for doc in lexical {
            let of_record = self.rows_of(*doc);
            if rows.len() + of_record.len() > most {
                break;
            }
            rows.extend(of_record);
        }
        self.score(question, &rows).await
    }

    async fn nearest_rows(
        &self,
        question: &Arc<[f32]>,
        passing: &BitSet,
        limit: usize,
    ) -> Result<BTreeSet<u32>, SourceError> {
        let passages: usize = passing.iter().map(|doc| self.rows_of(doc).len()).sum();
        if passages <= MAX_SCORED_AT_ONCE {
            return Ok(passing.iter().flat_map(|doc| self.rows_of(doc)).collect());
        }
        let wanted = MIN_RECORDS.max(2 * limit).min(passing.count());
        let candidates = MIN_CANDIDATES.max(2 * limit);
        if passages > MAX_EXACT {
            // As many more as do not pass, and half of it again: what passes is not spread evenly.
            let share = candidates * self.keys.len() / passages;
            let limit = (share + share / 2).min(MAX_FROM_INDEX);
            let found = self.source.nearest(Arc::clone(question), Scope::Index { limit }).await?;
            let rows = self.passing_rows(&found, passing);
            if self.count_records(&rows) >= wanted {
                return Ok(rows);
            }
        }
        let mut limit = candidates;
        loop {
            let keys: BTreeSet<Key> = passing.iter().flat_map(|doc| self.keys_of(doc)).copied().collect();
            let scope = Scope::Only { keys: keys.into_iter().collect(), limit };
            let found = self.source.nearest(Arc::clone(question), scope).await?;
            let rows = self.passing_rows(&found, passing);
            // Long records may take all places.
            if limit >= passages || self.count_records(&rows) >= wanted {
                return Ok(rows);
            }
            limit = (limit * 8).min(passages);
        }
    }

    /// Scores these passages with their vectors as they are.
    async fn score(&self, question: &Arc<[f32]>, rows: &BTreeSet<u32>) -> Result<Vec<Near>, SourceError> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let keys: BTreeSet<Key> = rows.iter().map(|row| self.keys[*row as usize]).collect();
        let fetched = self.source.fetch(keys.into_iter().collect()).await?;
        let mut best: BTreeMap<Doc, Near> = BTreeMap::new();
        let mut bytes = Vec::with_capacity(self.model.dimension);
        for (key, packed) in fetched {
            let Some(scale) = unpack(&key, &packed, self.model.dimension, &mut bytes) else { continue };
            let cosine = dot(&bytes, question) * scale;
            for row in self.rows_with(&key).filter(|row| rows.contains(row)) {
                let doc = self.doc_of(row);
                let passage = (row - self.starts[doc as usize]) as usize;
                let near = Near { doc, cosine, passage };
                let nearer = |other: &Near| {
                    other.cosine > cosine || (other.cosine >= cosine && other.passage < passage)
                };
                if !best.get(&doc).is_some_and(nearer) {
                    best.insert(doc, near);
                }
            }
        }
        Ok(best.into_values().collect())
    }

    fn rows_of(&self, doc: Doc) -> std::ops::Range<u32> {
        self.starts[doc as usize]..self.starts[doc as usize + 1]
    }

    fn keys_of(&self, doc: Doc) -> &[Key] {
        let rows = self.rows_of(doc);
        &self.keys[rows.start as usize..rows.end as usize]
    }

    fn doc_of(&self, row: u32) -> Doc {
        (self.starts.partition_point(|start| *start <= row) - 1) as Doc
    }

    fn rows_with(&self, key: &Key) -> impl Iterator<Item = u32> + '_ {
        let first = self.by_key.partition_point(|row| self.keys[*row as usize] < *key);
        let key = *key;
        self.by_key[first..].iter().copied().take_while(move |row| self.keys[*row as usize] == key)
    }

    /// A key may be that of a newer base, or of a passage that other records have as well.
    fn passing_rows(&self, keys: &[Key], passing: &BitSet) -> BTreeSet<u32> {
        keys.iter()
            .flat_map(|key| self.rows_with(key))
            .filter(|row| passing.contains(self.doc_of(*row)))
            .collect()
    }

    fn count_records(&self, rows: &BTreeSet<u32>) -> usize {
        rows.iter().map(|row| self.doc_of(*row)).collect::<BTreeSet<_>>().len()
    }
}
