//! One vector as bytes, with a digest of its own: what is read must be what was made.

use sha2::{Digest, Sha256};

use crate::vectors::Key;

/// How long the digest after each vector is.
const DIGEST: usize = 8;

/// Scale, bytes, and the beginning of a digest of those and of the key.
pub(crate) fn pack(key: &Key, bytes: &[i8], scale: f32) -> Vec<u8> {
    let mut packed = Vec::with_capacity(4 + bytes.len() + DIGEST);
    packed.extend(scale.to_le_bytes());
    packed.extend(bytes.iter().map(|byte| byte.cast_unsigned()));
    let digest = digest(key, &packed);
    packed.extend(digest);
    packed
}

/// The scale, with the bytes in `bytes`; `None` if it is not what was packed for this key.
pub(crate) fn unpack(key: &Key, packed: &[u8], dimension: usize, bytes: &mut Vec<i8>) -> Option<f32> {
    let (content, sum) = packed.split_last_chunk::<DIGEST>()?;
    let (scale, row) = content.split_first_chunk()?;
    let scale = f32::from_le_bytes(*scale);
    if digest(key, content) != *sum || row.len() != dimension || !scale.is_finite() {
        return None;
    }
    bytes.clear();
    bytes.extend(row.iter().map(|byte| byte.cast_signed()));
    Some(scale)
}

/// The numbers of a packed vector, for an engine that compares them itself; `None` if it is damaged.
pub fn vector_from_packed(key: &Key, packed: &[u8], dimension: usize) -> Option<Vec<f32>> {
    let mut bytes = Vec::with_capacity(dimension);
    let scale = unpack(key, packed, dimension, &mut bytes)?;
    Some(bytes.into_iter().map(|byte| f32::from(byte) * scale).collect())
}

fn digest(key: &Key, content: &[u8]) -> [u8; DIGEST] {
    let mut sha = Sha256::new();
    sha.update(key);
    sha.update(content);
    let mut short = [0; DIGEST];
    short.copy_from_slice(&sha.finalize()[..DIGEST]);
    short
}
