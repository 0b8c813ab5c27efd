//! Vectors in the file: each under the digest of what was embedded, so that a build which was interrupted goes on where
//! it was.

use std::collections::HashMap;

use quarterdeck_contracts::EmbeddingModel;
use rusqlite::{Connection, params};
use sha2::{Digest, Sha256};

use super::{FileError, KnowledgeFile};
use crate::snapshot::{KnownVectors, NewVector};
use crate::vectors::{Key, Rows};

/// How long the digest after each vector is.
const DIGEST: usize = 8;

impl KnowledgeFile {
    /// The vectors of a model, whether the build that made them was finished or not.
    pub fn vectors(&self, model: &EmbeddingModel) -> Result<KnownVectors, FileError> {
        let mut known =
            KnownVectors { model: model.clone(), rows: Rows::zeroed(model.dimension, 0), at: HashMap::new() };
        self.each_vector(model, |key, bytes, scale| {
            known.at.insert(key, known.rows.len());
            known.rows.push(bytes, scale);
        })?;
        Ok(known)
    }

    pub(super) fn each_vector(
        &self,
        model: &EmbeddingModel,
        mut each: impl FnMut(Key, &[i8], f32),
    ) -> Result<(), FileError> {
        let mut statement = self.connection.prepare("SELECT key, vector FROM vectors WHERE model = ?1")?;
        let mut rows = statement.query([&model.digest])?;
        let mut bytes = Vec::with_capacity(model.dimension);
        while let Some(row) = rows.next()? {
            let (key, vector) = (row.get_ref(0)?.as_blob(), row.get_ref(1)?.as_blob());
            let (Ok(key), Ok(vector)) = (key, vector) else {
                return Err(self.damaged("a vector is not bytes"));
            };
            let read = unpack(key, vector, model.dimension, &mut bytes);
            let (key, scale) = read.ok_or_else(|| self.damaged("a vector is not what was stored"))?;
            each(key, &bytes, scale);
        }
        Ok(())
    }
}

impl Rows {
    fn push(&mut self, bytes: &[i8], scale: f32) {
        self.bytes.extend_from_slice(bytes);
        self.scales.push(scale);
    }
}

/// Adds vectors; those that are there stay.
pub(super) fn put(
    connection: &Connection,
    model: &EmbeddingModel,
    fresh: &[NewVector<'_>],
) -> rusqlite::Result<()> {
    let mut put = connection.prepare_cached(
        "INSERT INTO vectors (model, key, vector) VALUES (?1, ?2, ?3) ON CONFLICT (model, key) DO NOTHING",
    )?;
    for (key, bytes, scale) in fresh {
        put.execute(params![model.digest, &key[..], pack(key, bytes, *scale)])?;
    }
    Ok(())
}

/// Scale, bytes, and the beginning of a digest of those and of the key.
fn pack(key: &Key, bytes: &[i8], scale: f32) -> Vec<u8> {
    let mut packed = Vec::with_capacity(4 + bytes.len() + DIGEST);
    packed.extend(scale.to_le_bytes());
    packed.extend(bytes.iter().map(|byte| byte.cast_unsigned()));
    let digest = digest(key, &packed);
    packed.extend(digest);
    packed
}

fn unpack(key: &[u8], packed: &[u8], dimension: usize, bytes: &mut Vec<i8>) -> Option<(Key, f32)> {
    let key = Key::try_from(key).ok()?;
    let (content, sum) = packed.split_last_chunk::<DIGEST>()?;
    let (scale, row) = content.split_first_chunk()?;
    let scale = f32::from_le_bytes(*scale);
    if digest(&key, content) != *sum || row.len() != dimension || !scale.is_finite() {
        return None;
    }
    bytes.clear();
    bytes.extend(row.iter().map(|byte| byte.cast_signed()));
    Some((key, scale))
}

fn digest(key: &Key, content: &[u8]) -> [u8; DIGEST] {
    let mut sha = Sha256::new();
    sha.update(key);
    sha.update(content);
    let mut short = [0; DIGEST];
    short.copy_from_slice(&sha.finalize()[..DIGEST]);
    short
}
