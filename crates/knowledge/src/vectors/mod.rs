//! Vectors of passages, kept as bytes and compared with a question as it is.

mod remote;
mod rows;
mod scan;
mod storage;

use std::num::NonZero;
use std::thread;

use quarterdeck_contracts::EmbeddingModel;
use sha2::{Digest, Sha256};

use crate::index::{BitSet, Doc};
use crate::top_k::TopK;
pub(crate) use remote::RemoteVectors;
pub use remote::{Scope, SourceError, VectorSource};
pub(crate) use rows::Rows;
use scan::{ScaledQuery, Scan};
pub(crate) use storage::VectorStorage;

/// Starting a thread takes as long as scanning a few thousand rows.
const MIN_ROWS_PER_THREAD: usize = 16_384;
/// Memory is not faster than a few threads.
const MAX_SCAN_THREADS: usize = 4;

/// What a passage is known by: the beginning of the SHA-256 of what was embedded.
pub type Key = [u8; 16];

/// A vector as it is kept: scale, bytes and a digest, under its key.
pub type PackedVector = (Key, Vec<u8>);

pub(crate) fn key(text: &str) -> Key {
    let digest = Sha256::digest(text.as_bytes());
    let mut key = Key::default();
    key.copy_from_slice(&digest[..16]);
    key
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VectorError {
    #[error("a vector has {found} numbers, and the model `{model}` gives {expected}")]
    Dimension { model: String, expected: usize, found: usize },
    /// Not a number, or none but zeros.
    #[error("a vector has no direction")]
    NoDirection,
}

/// One vector for each passage of each record, all of one model.
pub(crate) struct Vectors {
    pub(crate) model: EmbeddingModel,
    pub(crate) rows: Rows,
    /// Where the rows of each record begin; one more than there are records.
    pub(crate) starts: Vec<u32>,
    /// By row: the digest of what was embedded.
    pub(crate) keys: Vec<Key>,
}

impl Vectors {
    /// The cosine of a record's best passage, and which one it is.
    pub(crate) fn score(&self, doc: Doc, question: &[f32]) -> Option<(f32, usize)> {
        let rows = self.starts[doc as usize]..self.starts[doc as usize + 1];
        let first = rows.start;
        let scored = rows.map(|row| {
            let (bytes, scale) = self.rows.get(row as usize);
            (dot(bytes, question) * scale, (row - first) as usize)
        });
        scored.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))
    }

    /// The records among those that pass whose cosine with the question `score` puts first, at most `limit`, with all
    /// of them compared. The question is rounded for it; [`Self::score`] has all digits.
    pub(crate) fn best(
        &self,
        question: &[f32],
        filter: &BitSet,
        limit: usize,
        score: impl Fn(Doc, f64) -> f64 + Copy + Send + Sync,
    ) -> Vec<Doc> {
        let question = &ScaledQuery::new(question);
        let share = |number, of| {
            let mut best = TopK::new(limit);
            let scan = Scan { rows: &self.rows, starts: &self.starts, question };
            scan.run(filter.share(number, of), score, &mut best);
            best.finish()
        };
        let cores = thread::available_parallelism().map_or(1, NonZero::get).min(MAX_SCAN_THREADS);
        let threads = (filter.count() / MIN_ROWS_PER_THREAD).clamp(1, cores);
        let mut best = TopK::new(limit);
        thread::scope(|scope| {
            let start = |number| {
                let work = move || share(number, threads);
                thread::Builder::new().name("knowledge-scan".to_owned()).spawn_scoped(scope, work)
            };
            let others: Vec<_> = (1..threads).map(start).collect();
            let mut found = share(0, threads);
            for (other, number) in others.into_iter().zip(1..) {
                // Whatever a thread could not do is done here.
                let there = other.ok().and_then(|other| other.join().ok());
                found.extend(there.unwrap_or_else(|| share(number, threads)));
            }
            found.into_iter().for_each(|(score, doc)| best.offer(score, doc));
        });
        best.finish().into_iter().map(|(_, doc)| doc).collect()
    }
}

/// The vector with length one, when it is one of this model.
pub(crate) fn unit(model: &EmbeddingModel, vector: &[f32]) -> Result<Vec<f32>, VectorError> {
    if vector.len() != model.dimension {
        let (model, expected, found) = (model.name.clone(), model.dimension, vector.len());
        return Err(VectorError::Dimension { model, expected, found });
    }
    let length = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
    if !length.is_finite() || length <= 1e-12 {
        return Err(VectorError::NoDirection);
    }
    Ok(vector.iter().map(|number| (f64::from(*number) / length) as f32).collect())
}

/// The vector of a passage as it is kept: of length one, or nothing at all where the model sees nothing.
pub(crate) fn unit_or_zero(model: &EmbeddingModel, vector: &[f32]) -> Result<Vec<f32>, VectorError> {
    let is_zero = vector.len() == model.dimension && vector.iter().all(|number| *number == 0.0);
    if is_zero { Ok(vector.to_vec()) } else { unit(model, vector) }
}

/// Sixteen sums side by side: one after the other, additions of floats may not be reordered and wait for each other.
fn dot(row: &[i8], question: &[f32]) -> f32 {
    let mut sums = [0_f32; 16];
    let (rows, rest) = row.as_chunks::<16>();
    let (questions, question_rest) = question.as_chunks::<16>();
    for (row, question) in rows.iter().zip(questions) {
        for at in 0..16 {
            sums[at] += f32::from(row[at]) * question[at];
        }
    }
    let rest: f32 = rest.iter().zip(question_rest).map(|(a, b)| f32::from(*a) * b).sum();
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

    fn vectors(docs: u32) -> Vectors {
        let mut rows = Rows::zeroed(40, docs as usize * 2);
        for row in 0..docs * 2 {
            rows.put(row as usize, &unit(&model(), &vector(row)).unwrap());
        }
        let starts = (0..=docs).map(|doc| doc * 2).collect();
        Vectors { model: model(), keys: vec![Key::default(); rows.len()], rows, starts }
    }

    #[test]
    fn the_best_are_those_of_exact_scoring_on_any_number_of_threads() {
        let docs = 3 * MIN_ROWS_PER_THREAD as u32;
        let vectors = vectors(docs);
        let query = unit(&model(), &vector(77)).unwrap();
        let score = |doc: Doc, cosine: f64| 0.5 * cosine + 0.5 / f64::from(doc % 50 + 1);
        for keep in [1, 2, 100] {
            let filter = BitSet::of(docs as usize, |at| at % keep == 0);
            let mut truth = TopK::new(10);
            for doc in filter.iter() {
                truth.offer(score(doc, f64::from(vectors.score(doc, &query).unwrap().0)), doc);
            }
            let found = vectors.best(&query, &filter, 50, score);
            assert!(truth.finish().iter().all(|(_, doc)| found.contains(doc)), "{keep}");
        }
        let (cosine, passage) = vectors.score(38, &query).unwrap();
        assert!((cosine - 1.0).abs() < 2e-3 && passage == 1, "{cosine}");
    }

    #[test]
    fn bytes_are_as_good_as_floats_to_the_third_digit() {
        let vectors = vectors(500);
        let query = unit(&model(), &vector(9_999)).unwrap();
        for doc in 0..500 {
            let exact = |row: u32| {
                let row = unit(&model(), &vector(row)).unwrap();
                row.iter().zip(&query).map(|(a, b)| a * b).sum::<f32>()
            };
            let exact = exact(doc * 2).max(exact(doc * 2 + 1));
            let kept = vectors.score(doc, &query).unwrap().0;
            assert!((kept - exact).abs() < 5e-3, "{kept} {exact}");
        }
    }

    #[test]
    fn vectors_of_another_length_or_without_direction_are_refused() {
        assert!(matches!(unit_or_zero(&model(), &[1.0]), Err(VectorError::Dimension { found: 1, .. })));
        assert_eq!(unit_or_zero(&model(), &[f32::NAN; 40]), Err(VectorError::NoDirection));
        assert_eq!(unit_or_zero(&model(), &[0.0; 40]), Ok(vec![0.0; 40]));
        assert_eq!(unit(&model(), &[0.0; 40]), Err(VectorError::NoDirection));
    }
}
