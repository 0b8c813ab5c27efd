//! A finished base: what a search holds on to while the next one is being built.

use std::collections::HashMap;

use quarterdeck_contracts::{EmbedError, Embedder, EmbeddingModel, KnowledgeRecord, sha256};

use crate::embed::embed_on_every_core;
use crate::index::Index;
use crate::passages::embedded_texts;
use crate::vectors::{VectorError, Vectors};

/// Vectors that were computed before, of one model, by the SHA-256 of what was embedded.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownVectors {
    /// What made them. Those of another model are not used.
    pub model: EmbeddingModel,
    /// By digest.
    pub vectors: HashMap<String, Vec<f32>>,
}

/// How far building has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Passages that have vectors.
    pub done: usize,
    /// Passages in all.
    pub total: usize,
}

/// Why a base cannot be built.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The model failed.
    #[error("a record could not be embedded")]
    Embed(#[source] EmbedError),
    /// The model gave something that is not a vector of its own.
    #[error("the embedding model gave a vector that cannot be used")]
    Vector(#[source] VectorError),
}

/// Index and vectors that belong together.
pub(crate) struct Snapshot {
    pub(crate) index: Index,
    pub(crate) vectors: Option<Vectors>,
}

impl Snapshot {
    /// Builds a base. What `known` has under the same model is not embedded again.
    pub(crate) fn build(
        records: Vec<KnowledgeRecord>,
        embedder: Option<&dyn Embedder>,
        known: impl Fn(&EmbeddingModel, &str) -> Option<Vec<f32>>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, BuildError> {
        let index = Index::new(records);
        let vectors = match embedder {
            Some(embedder) => Some(embed_all(index.records(), embedder, known, progress)?),
            None => None,
        };
        Ok(Self { index, vectors })
    }
}

fn embed_all(
    records: &[KnowledgeRecord],
    embedder: &dyn Embedder,
    known: impl Fn(&EmbeddingModel, &str) -> Option<Vec<f32>>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vectors, BuildError> {
    let model = embedder.model();
    let mut rows: Vec<Option<Vec<f32>>> = Vec::new();
    let mut keys: Vec<String> = Vec::new();
    let mut counts: Vec<usize> = Vec::with_capacity(records.len());
    let mut missing: Vec<(usize, String)> = Vec::new();
    for record in records {
        let texts = embedded_texts(record);
        counts.push(texts.len());
        for text in texts {
            let key = sha256(text.as_bytes());
            let row = known(model, &key);
            if row.is_none() {
                missing.push((rows.len(), text));
            }
            rows.push(row);
            keys.push(key);
        }
    }
    let total = rows.len();
    let mut done = total - missing.len();
    progress(Progress { done, total });
    let texts: Vec<&str> = missing.iter().map(|(_, text)| text.as_str()).collect();
    embed_on_every_core(embedder, &texts, |first, vectors| {
        done += vectors.len();
        for ((row, _), vector) in missing[first..].iter().zip(vectors) {
            rows[*row] = Some(vector);
        }
        progress(Progress { done, total });
        Ok(())
    })?;
    let mut rows = rows.into_iter().map(Option::unwrap_or_default).zip(keys);
    let mut vectors = Vectors::new(model.clone());
    for count in counts {
        vectors.push(rows.by_ref().take(count)).map_err(BuildError::Vector)?;
    }
    Ok(vectors)
}
