//! A finished base: what a search holds on to while the next one is being built.

use std::collections::HashMap;

use quarterdeck_contracts::{EmbedError, Embedder, EmbeddingModel, KnowledgeRecord};

use crate::embed::embed_in_parallel;
use crate::index::{Doc, Index};
use crate::passages::embedded_texts;
use crate::vectors::{Key, Rows, VectorError, VectorStorage, Vectors, key, unit_or_zero};

/// Vectors that were computed before, of one model, by what was embedded.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownVectors {
    /// Vectors of another model are not used.
    pub model: EmbeddingModel,
    pub(crate) rows: Rows,
    pub(crate) at: HashMap<Key, usize>,
}

impl KnownVectors {
    pub fn len(&self) -> usize {
        self.at.len()
    }

    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Passages that have vectors.
    pub done: usize,
    /// Passages in all.
    pub total: usize,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    #[error("a record could not be embedded; search by words needs no model")]
    Embed(#[source] EmbedError),
    /// The model gave something that is not a vector of its own.
    #[error("the embedding model gave a vector that cannot be used; install it again")]
    Vector(#[source] VectorError),
    /// A record nests deeper than JSON is read.
    #[error("the record `{0}` cannot be read again; its metadata nests too deep")]
    Record(String),
    /// Vectors that were made could not be kept.
    #[error("vectors could not be kept: {0}")]
    Keep(String),
}

/// Called while a base is built.
pub(crate) struct BuildObserver<'a> {
    pub(crate) progress: &'a mut dyn FnMut(Progress),
    /// Takes vectors as they are made, so that an interrupted build need not make them again.
    pub(crate) keep: &'a mut dyn FnMut(&[NewVector<'_>]) -> Result<(), BuildError>,
}

/// A vector that was just made: its key, bytes and scale.
pub(crate) type NewVector<'a> = (Key, &'a [i8], f32);

pub(crate) struct Snapshot {
    pub(crate) index: Index,
    pub(crate) vectors: Option<VectorStorage>,
}

impl Snapshot {
    /// Builds a base. What `known` has is not embedded again.
    pub(crate) fn build(
        records: Vec<KnowledgeRecord>,
        embedder: Option<&dyn Embedder>,
        known: Option<(&Rows, &HashMap<Key, usize>)>,
        observer: &mut BuildObserver<'_>,
    ) -> Result<Self, BuildError> {
        let index = Index::new(records);
        let vectors = match embedder {
            Some(embedder) => Some(VectorStorage::Memory(embed_all(&index, embedder, known, observer)?)),
            None => None,
        };
        Ok(Self { index, vectors })
    }

    /// Where the vector of each text is.
    pub(crate) fn vectors_by_key(&self, model: &EmbeddingModel) -> Option<(&Rows, HashMap<Key, usize>)> {
        let vectors = self.vectors.as_ref()?.in_memory().filter(|vectors| vectors.model == *model)?;
        Some((&vectors.rows, vectors.keys.iter().copied().zip(0..).collect()))
    }
}

fn embed_all(
    index: &Index,
    embedder: &dyn Embedder,
    known: Option<(&Rows, &HashMap<Key, usize>)>,
    observer: &mut BuildObserver<'_>,
) -> Result<Vectors, BuildError> {
    let model = embedder.model();
    let known_row = |key: &Key| known.and_then(|(_, at)| at.get(key).copied());
    let mut starts = vec![0_u32];
    let mut keys: Vec<Key> = Vec::new();
    let mut missing: Vec<(usize, String)> = Vec::new();
    for doc in 0..index.records.len() as Doc {
        let record = index.records.get(doc);
        let record = record.map_err(|_| BuildError::Record(index.records.id(doc).to_owned()))?;
        for text in embedded_texts(&record) {
            let key = key(&text);
            if known_row(&key).is_none() {
                missing.push((keys.len(), text));
            }
            keys.push(key);
        }
        starts.push(keys.len() as u32);
    }
    let total = keys.len();
    let mut rows = Rows::zeroed(model.dimension, total);
    if let Some((known_rows, _)) = known {
        for (row, from) in keys.iter().enumerate().filter_map(|(row, key)| Some((row, known_row(key)?))) {
            rows.copy(row, known_rows, from);
        }
    }
    let mut done = total - missing.len();
    (observer.progress)(Progress { done, total });
    let texts: Vec<&str> = missing.iter().map(|(_, text)| text.as_str()).collect();
    embed_in_parallel(embedder, &texts, |first, vectors| {
        let made: Vec<usize> = missing[first..].iter().take(vectors.len()).map(|(row, _)| *row).collect();
        for (row, vector) in made.iter().zip(vectors) {
            rows.put(*row, &unit_or_zero(model, &vector).map_err(BuildError::Vector)?);
        }
        let fresh = |row: &usize| {
            let (bytes, scale) = rows.get(*row);
            (keys[*row], bytes, scale)
        };
        (observer.keep)(&made.iter().map(fresh).collect::<Vec<_>>())?;
        done += made.len();
        (observer.progress)(Progress { done, total });
        Ok(())
    })?;
    Ok(Vectors { model: model.clone(), rows, starts, keys })
}
