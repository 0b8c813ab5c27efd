//! Vectors of passages: small integers to scan, floats to be exact about the best.

mod quantised;

use std::collections::HashMap;

use quarterdeck_contracts::EmbeddingModel;

use crate::index::{Bits, Doc};
use quantised::{Quantised, quantise};

/// How many records of the scan are scored again with all their digits.
const RESCORED: usize = 200;

/// Why vectors cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VectorError {
    /// A vector of another length than the model's.
    #[error("a vector has {found} numbers, and the model `{model}` gives {expected}")]
    Dimension {
        /// The model's name.
        model: String,
        /// How many there should be.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// Not a number, or none but zeros.
    #[error("a vector has no direction")]
    NoDirection,
}

/// One vector for each passage of each record, all of one model.
pub(crate) struct Vectors {
    model: EmbeddingModel,
    exact: Vec<f32>,
    quantised: Quantised,
    /// Where the rows of each record begin; one more than there are records.
    starts: Vec<usize>,
    /// By row: the digest of what was embedded.
    keys: Vec<String>,
}

impl Vectors {
    /// Vectors without records.
    pub(crate) fn new(model: EmbeddingModel) -> Self {
        let quantised = Quantised::new(model.dimension);
        Self { model, exact: Vec::new(), quantised, starts: vec![0], keys: Vec::new() }
    }

    /// Adds the vectors of the next record, each with the digest of what was embedded. A passage in which the model
    /// sees nothing is near to nothing.
    pub(crate) fn push(
        &mut self,
        passages: impl Iterator<Item = (Vec<f32>, String)>,
    ) -> Result<(), VectorError> {
        for (passage, key) in passages {
            let is_zero =
                passage.len() == self.model.dimension && passage.iter().all(|number| *number == 0.0);
            let unit = if is_zero { passage } else { unit(&self.model, &passage)? };
            self.quantised.push(&unit);
            self.exact.extend(unit);
            self.keys.push(key);
        }
        self.starts.push(self.keys.len());
        Ok(())
    }

    /// How many rows there are.
    pub(crate) fn rows(&self) -> usize {
        self.keys.len()
    }

    /// The vector of a row.
    pub(crate) fn row(&self, row: usize) -> &[f32] {
        let dimension = self.model.dimension;
        &self.exact[row * dimension..(row + 1) * dimension]
    }

    /// Rows by the digest of what was embedded.
    pub(crate) fn by_key(&self) -> HashMap<&str, usize> {
        self.keys.iter().map(String::as_str).zip(0..).collect()
    }

    /// What made them.
    pub(crate) fn model(&self) -> &EmbeddingModel {
        &self.model
    }

    /// The cosine of a record's best passage, and which one it is.
    pub(crate) fn score(&self, doc: Doc, query: &[f32]) -> Option<(f32, usize)> {
        let rows = self.starts[doc as usize]..self.starts[doc as usize + 1];
        let first = rows.start;
        let scored = rows.map(|row| (dot(self.row(row), query), row - first));
        scored.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))
    }

    /// The records nearest to a query among those that pass, the nearest first, at most `most`.
    pub(crate) fn nearest(&self, query: &[f32], filter: &Bits, most: usize) -> Vec<Doc> {
        let (small, _) = quantise(query);
        let mut scored: Vec<(f32, Doc)> = Vec::with_capacity(filter.count());
        for doc in filter.iter() {
            let rows = self.starts[doc as usize]..self.starts[doc as usize + 1];
            if let Some(best) = rows.map(|row| self.quantised.score(row, &small)).reduce(f32::max) {
                scored.push((best, doc));
            }
        }
        keep_best(&mut scored, RESCORED.max(most));
        for (score, doc) in &mut scored {
            *score = self.score(*doc, query).map_or(*score, |(exact, _)| exact);
        }
        keep_best(&mut scored, most);
        scored.into_iter().map(|(_, doc)| doc).collect()
    }
}

/// The vector with length one, when it is one of this model.
pub(crate) fn unit(model: &EmbeddingModel, vector: &[f32]) -> Result<Vec<f32>, VectorError> {
    if vector.len() != model.dimension {
        let (model, expected, found) = (model.name.clone(), model.dimension, vector.len());
        return Err(VectorError::Dimension { model, expected, found });
    }
    let length = dot(vector, vector).sqrt();
    if !length.is_finite() || length <= 1e-12 {
        return Err(VectorError::NoDirection);
    }
    Ok(vector.iter().map(|number| number / length).collect())
}

fn keep_best(scored: &mut Vec<(f32, Doc)>, most: usize) {
    let order = |a: &(f32, Doc), b: &(f32, Doc)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    if most > 0 && most < scored.len() {
        scored.select_nth_unstable_by(most - 1, order);
        scored.truncate(most);
    }
    scored.sort_unstable_by(order);
}

/// Sixteen sums side by side: one after the other, additions of floats may not be reordered and wait for each other.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0_f32; 16];
    let (a, a_rest) = a.as_chunks::<16>();
    let (b, b_rest) = b.as_chunks::<16>();
    for (a, b) in a.iter().zip(b) {
        for at in 0..16 {
            sums[at] += a[at] * b[at];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> EmbeddingModel {
        EmbeddingModel { name: "test".into(), dimension: 40, digest: "0".into() }
    }

    fn vector(seed: u32) -> Vec<f32> {
        let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32 - 0.5
        };
        (0..40).map(|_| next()).collect()
    }

    #[test]
    fn the_nearest_are_those_of_exact_scoring() {
        let mut vectors = Vectors::new(model());
        for doc in 0..1_000 {
            vectors
                .push([vector(doc * 2), vector(doc * 2 + 1)].map(|row| (row, String::new())).into_iter())
                .unwrap();
        }
        let query = unit(&model(), &vector(77)).unwrap();
        for keep in [1, 2, 100] {
            let filter = Bits::of(1_000, |at| at % keep == 0);
            let mut truth: Vec<(f32, Doc)> =
                filter.iter().map(|doc| (vectors.score(doc, &query).unwrap().0, doc)).collect();
            keep_best(&mut truth, 10);
            let truth: Vec<Doc> = truth.into_iter().map(|(_, doc)| doc).collect();
            assert_eq!(vectors.nearest(&query, &filter, 10), truth);
        }
        let (cosine, passage) = vectors.score(38, &query).unwrap();
        assert!((cosine - 1.0).abs() < 1e-5 && passage == 1);
    }

    #[test]
    fn vectors_of_another_length_or_without_direction_are_refused() {
        let mut vectors = Vectors::new(model());
        let mut push = |row: &[f32]| vectors.push(std::iter::once((row.to_vec(), String::new())));
        assert!(matches!(push(&[1.0]), Err(VectorError::Dimension { found: 1, .. })));
        assert_eq!(push(&[f32::NAN; 40]), Err(VectorError::NoDirection));
        assert_eq!(push(&[0.0; 40]), Ok(()));
        assert_eq!(unit(&model(), &[0.0; 40]), Err(VectorError::NoDirection));
    }
}
