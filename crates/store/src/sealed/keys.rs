//! The keys that rows are encrypted with.

use std::fmt;

use quarterdeck_contracts::sha256;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

/// The length of a key, before it is written as base64.
pub const KEY_BYTES: usize = 32;
/// How many hexadecimal digits name a key.
const ID_DIGITS: usize = 16;

/// A key, which never prints itself.
///
/// Nonces are random, so one key is good for some four thousand million rows: a busy server replaces it long before that.
#[derive(Clone)]
pub struct SealingKey {
    id: String,
    aead: LessSafeKey,
}

/// What is written with the first key can be read with any of them.
#[derive(Clone, Default)]
pub struct SealingKeys {
    current: Option<SealingKey>,
    previous: Vec<SealingKey>,
}

/// Why a text is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAKey;

impl fmt::Display for NotAKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key is 32 random bytes in base64; `openssl rand -base64 32` makes one")
    }
}

impl std::error::Error for NotAKey {}

impl SealingKey {
    /// A key from base64, with or without padding.
    pub fn from_base64(text: &str) -> Result<Self, NotAKey> {
        let text = text.trim().trim_end_matches('=');
        let bytes = base64_simd::STANDARD_NO_PAD.decode_to_vec(text).map_err(|_| NotAKey)?;
        let bytes: [u8; KEY_BYTES] = bytes.try_into().map_err(|_| NotAKey)?;
        let unbound = UnboundKey::new(&AES_256_GCM, &bytes).map_err(|_| NotAKey)?;
        // The hash of a random key tells nothing of it.
        let id = sha256(&[b"quarterdeck sealing key ".as_slice(), &bytes].concat());
        Ok(Self { id: id[..ID_DIGITS].to_owned(), aead: LessSafeKey::new(unbound) })
    }

    /// Names the key without giving it away.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Encrypts a text for one place; `None` without random numbers.
    pub(super) fn seal(&self, place: &[u8], text: String) -> Option<String> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).ok()?;
        let mut bytes = text.into_bytes();
        let sealing = Nonce::assume_unique_for_key(nonce);
        self.aead.seal_in_place_append_tag(sealing, Aad::from(place), &mut bytes).ok()?;
        Some(base64_simd::STANDARD_NO_PAD.encode_to_string([nonce.as_slice(), &bytes].concat()))
    }

    /// Decrypts what was sealed for this place; `None` when it was not, or was changed since.
    pub(super) fn open(&self, place: &[u8], data: &str) -> Option<Vec<u8>> {
        let mut bytes = base64_simd::STANDARD_NO_PAD.decode_to_vec(data).ok()?;
        let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        Some(self.aead.open_in_place(nonce, Aad::from(place), sealed).ok()?.to_vec())
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealingKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SealingKeys {
    /// Writes with `current`, and reads what it or one of the others wrote.
    pub fn new(current: Option<SealingKey>, previous: Vec<SealingKey>) -> Self {
        Self { current, previous }
    }

    pub fn current(&self) -> Option<&SealingKey> {
        self.current.as_ref()
    }

    pub(super) fn find(&self, id: &str) -> Option<&SealingKey> {
        self.current.iter().chain(&self.previous).find(|key| key.id == id)
    }
}

impl fmt::Debug for SealingKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.current.iter().chain(&self.previous).map(SealingKey::id);
        f.debug_list().entries(ids).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn key(byte: u8) -> SealingKey {
        SealingKey::from_base64(&base64_simd::STANDARD.encode_to_string([byte; KEY_BYTES]))
            .expect("it is a key")
    }

    #[test]
    fn only_32_bytes_in_base64_are_a_key() {
        for text in
            ["", "short", &"A".repeat(42), &"A".repeat(44), "not base64 at all, not base64 at all, no!!!"]
        {
            assert_eq!(SealingKey::from_base64(text).err(), Some(NotAKey), "{text:?}");
        }
        let text = base64_simd::STANDARD.encode_to_string([7; KEY_BYTES]);
        let padded = SealingKey::from_base64(&format!(" {text}\n")).expect("it is a key");
        let bare = SealingKey::from_base64(text.trim_end_matches('=')).expect("it is a key");
        assert_eq!(padded.id(), bare.id());
        assert!(!format!("{padded:?}").contains(&text[..8]), "a key does not print itself");
    }

    #[test]
    fn a_text_opens_only_with_its_key_at_its_place_and_unchanged() {
        let sealed = key(1).seal(b"a", "words".into()).expect("there are random numbers");
        assert_eq!(key(1).open(b"a", &sealed).as_deref(), Some(b"words".as_slice()));
        assert_eq!(key(2).open(b"a", &sealed), None);
        assert_eq!(key(1).open(b"b", &sealed), None);
        assert_eq!(key(1).open(b"a", &sealed[..10]), None);
        assert_eq!(key(1).open(b"a", ""), None);
        let again = key(1).seal(b"a", "words".into()).expect("there are random numbers");
        assert_ne!(sealed, again, "each value has a nonce of its own");
    }
}
