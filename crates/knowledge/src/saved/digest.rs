//! Digests: of a record's content, of all records, and of what was derived from them.

use sha2::{Digest, Sha256};

/// A digest of the hashes of all records, to which everything derived is tied.
#[derive(Default)]
pub struct RecordsDigest(Sha256);

impl RecordsDigest {
    /// Takes the hash of the next record, in the order of ids.
    pub fn add(&mut self, hash: &str) {
        self.0.update(hash.as_bytes());
    }

    pub fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

/// Something derived from records, and the digest that was stored with it.
pub struct Part {
    pub stored: Vec<u8>,
    pub content: Vec<u8>,
}

impl Part {
    /// What is to be kept of something derived from records with this digest.
    pub fn new(records_digest: &[u8; 32], content: Vec<u8>) -> Self {
        let stored = bind_digest(records_digest, &Sha256::digest(&content).into()).to_vec();
        Self { stored, content }
    }

    /// Whether it is whole and was derived from records with this digest.
    pub fn belongs_to(&self, records_digest: &[u8; 32]) -> bool {
        bind_digest(records_digest, &Sha256::digest(&self.content).into())[..] == self.stored[..]
    }
}

/// The digest of something derived from records with this digest.
pub(crate) fn bind_digest(records_digest: &[u8; 32], content: &[u8; 32]) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(records_digest);
    digest.update(content);
    digest.finalize().into()
}

/// The hash of a record's JSON, in hexadecimal digits.
pub fn hash_of(body: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(body.as_bytes()) {
        hex.push(char::from(DIGITS[usize::from(byte >> 4)]));
        hex.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    hex
}
