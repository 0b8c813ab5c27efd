//! Which passages each record has, and the vectors of all of them read in the order of keys.

use quarterdeck_contracts::EmbeddingModel;

use super::unpack;
use crate::bytes::{Reader, Writer};
use crate::vectors::{Key, Rows, Vectors};

/// No model comes near it.
const MAX_DIMENSION: usize = 65_536;

/// The passages of all records, in the order of records.
pub struct PassageList {
    pub(crate) model: EmbeddingModel,
    /// Where those of each record begin; one more than there are records.
    pub(crate) starts: Vec<u32>,
    /// By passage: the digest of what was embedded.
    pub(crate) keys: Vec<Key>,
}

impl PassageList {
    pub(crate) fn write(vectors: &Vectors) -> Vec<u8> {
        let mut out = Writer::default();
        // A model's description holds nothing that JSON cannot say.
        out.bytes(&serde_json::to_vec(&vectors.model).unwrap_or_default());
        out.list(&vectors.starts, |start| start.to_le_bytes());
        out.list(&vectors.keys, |key| *key);
        out.finish()
    }

    /// `None` if it does not belong together: nothing is known to be whole yet, so no number is believed that would take
    /// memory.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader::new(bytes);
        let model: EmbeddingModel = serde_json::from_slice(from.bytes()?).ok()?;
        let (starts, keys) = (from.list(u32::from_le_bytes)?, from.list(|key: Key| key)?);
        let divides = from.is_empty()
            && model.dimension <= MAX_DIMENSION
            && starts.first() == Some(&0)
            && starts.is_sorted()
            && starts.last().is_some_and(|last| *last as usize == keys.len());
        divides.then_some(Self { model, starts, keys })
    }

    pub fn model(&self) -> &EmbeddingModel {
        &self.model
    }

    /// One for each passage; passages that say the same share theirs.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }
}

/// Puts vectors where their passages are.
pub struct VectorReader {
    vectors: Vectors,
    /// Passages that say the same share a key, and each has a row.
    by_key: Vec<(Key, u32)>,
    next: usize,
    filled: usize,
    bytes: Vec<i8>,
}

impl VectorReader {
    pub fn new(passages: PassageList) -> Self {
        let PassageList { model, starts, keys } = passages;
        let mut by_key: Vec<(Key, u32)> = keys.iter().copied().zip(0..).collect();
        by_key.sort_unstable();
        let rows = Rows::zeroed(model.dimension, keys.len());
        let bytes = Vec::with_capacity(model.dimension);
        Self { vectors: Vectors { model, rows, starts, keys }, by_key, next: 0, filled: 0, bytes }
    }

    /// Takes the next vector, in the order of keys. `false` if it is not what was packed.
    #[must_use]
    pub fn put(&mut self, key: Key, packed: &[u8]) -> bool {
        let mut bytes = std::mem::take(&mut self.bytes);
        let scale = unpack(&key, packed, self.vectors.model.dimension, &mut bytes);
        if let Some(scale) = scale {
            self.set(key, &bytes, scale);
        }
        self.bytes = bytes;
        scale.is_some()
    }

    pub(crate) fn set(&mut self, key: Key, bytes: &[i8], scale: f32) {
        while self.by_key.get(self.next).is_some_and(|(other, _)| *other < key) {
            self.next += 1;
        }
        while let Some((_, row)) = self.by_key.get(self.next).filter(|(other, _)| *other == key) {
            self.vectors.rows.set(*row as usize, bytes, scale);
            self.next += 1;
            self.filled += 1;
        }
    }

    /// The vectors of the passages; `None` if some are not there any more.
    pub(crate) fn finish(self) -> Option<Vectors> {
        (self.filled == self.by_key.len()).then_some(self.vectors)
    }
}
