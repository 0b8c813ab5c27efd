//! Files of sessions: images that tools have made.
//!
//! A file is rows of the store, not a file on the disk: it is committed with the record of the call that made it or not at
//! all, it is forgotten and erased with its session, a backup holds it, and no path is ever built from what a client sends.

use quarterdeck_contracts::{
    Commit, CommitError, ImageInfo, ImageType, Overlay, Scan, Store, StoreError, Table, sha256,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::ids::random_hex;
use crate::store_keys::all_rows;

/// Bytes in one row. A whole image in one would hold up every other commit while it is written.
const PIECE_BYTES: usize = 192 << 10;

/// How many rows are erased in one commit.
const ERASED_ROWS: usize = 500;

const ID_PREFIX: &str = "file_";
const ID_HEX_DIGITS: usize = 32;

/// A file of a session, without its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionFile {
    /// Unguessable, and unique among all sessions.
    pub id: String,
    /// Read from the bytes.
    pub media_type: ImageType,
    pub bytes: usize,
    /// In pixels.
    pub width: u32,
    pub height: u32,
    /// SHA-256 of the bytes.
    pub digest: String,
    /// In milliseconds since 1970.
    pub created_ms: u64,
}

impl SessionFile {
    /// A new file with these bytes; `None` without random numbers.
    pub fn new(bytes: &[u8], info: ImageInfo, created_ms: u64) -> Option<Self> {
        Some(Self {
            id: format!("{ID_PREFIX}{}", random_hex(ID_HEX_DIGITS / 2)?),
            media_type: info.kind,
            bytes: bytes.len(),
            width: info.width,
            height: info.height,
            digest: sha256(bytes),
            created_ms,
        })
    }

    /// Whether a text is the id of a file, of whichever session.
    pub fn is_id(text: &str) -> bool {
        text.strip_prefix(ID_PREFIX).is_some_and(|digits| {
            digits.len() == ID_HEX_DIGITS
                && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        })
    }

    /// Writes it for a session. It exists when the overlay is committed.
    pub fn put(&self, overlay: &Overlay, session: &str, bytes: &[u8]) {
        for (index, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
            let text = base64_simd::STANDARD.encode_to_string(piece);
            overlay.put(Table::Files, piece_key(session, &self.id, index), json!(text));
        }
        overlay.put(Table::Files, file_key(session, &self.id), json!(self));
    }

    fn pieces(&self) -> usize {
        self.bytes.div_ceil(PIECE_BYTES)
    }
}

/// How many files a session has, counted up to `limit`.
pub(crate) async fn count_files(overlay: &Overlay, session: &str, limit: usize) -> Result<usize, StoreError> {
    Ok(overlay.scan(Table::Files, &file_key(session, ""), limit).await?.len())
}

/// A file of a session, if it has one of that id.
pub async fn find_file(
    store: &dyn Store,
    session: &str,
    id: &str,
) -> Result<Option<SessionFile>, StoreError> {
    // A text with a slash in it could reach rows of another session.
    if !SessionFile::is_id(id) || session.contains('/') {
        return Ok(None);
    }
    let row = store.get(Table::Files, &file_key(session, id)).await?;
    Ok(row.and_then(|row| serde_json::from_value(row.value).ok()))
}

/// The bytes of a file; `None` when they are not all there, or not those that were written.
pub async fn read_file(
    store: &dyn Store,
    session: &str,
    file: &SessionFile,
) -> Result<Option<Vec<u8>>, StoreError> {
    let scan = Scan::prefix(piece_prefix(session, &file.id), file.pieces());
    let mut bytes = Vec::with_capacity(file.bytes);
    for (_, row) in store.scan(Table::Files, scan).await? {
        let piece = row.value.as_str().and_then(|text| base64_simd::STANDARD.decode_to_vec(text).ok());
        let Some(piece) = piece else { return Ok(None) };
        bytes.extend_from_slice(&piece);
    }
    Ok((sha256(&bytes) == file.digest).then_some(bytes))
}

/// The keys of everything that a session's files consist of.
pub(crate) async fn file_rows(store: &dyn Store, session: &str) -> Result<Vec<String>, StoreError> {
    let mut keys = Vec::new();
    // The pieces are not read: they may be large, and what is known of a file says how many there are.
    for (key, value) in all_rows(store, Table::Files, &file_key(session, "")).await? {
        let id = key.rsplit('/').next().unwrap_or_default();
        let pieces = pieces_of(value);
        keys.extend((0..pieces).map(|index| piece_key(session, id, index)));
        keys.push(key);
    }
    Ok(keys)
}

/// Erases the files of a session.
pub async fn erase_files(store: &dyn Store, session: &str) -> Result<(), CommitError> {
    let keys = file_rows(store, session).await?;
    for portion in keys.chunks(ERASED_ROWS) {
        let commit = portion.iter().fold(Commit::default(), |commit, key| commit.delete(Table::Files, key));
        store.commit(commit).await?;
    }
    Ok(())
}

fn pieces_of(value: Value) -> usize {
    serde_json::from_value::<SessionFile>(value).map_or(0, |file| file.pieces())
}

fn file_key(session: &str, id: &str) -> String {
    format!("f/{session}/{id}")
}

fn piece_prefix(session: &str, id: &str) -> String {
    format!("p/{session}/{id}/")
}

/// Numbered with leading zeros, because rows come in the order of their keys.
fn piece_key(session: &str, id: &str, index: usize) -> String {
    format!("{}{index:06}", piece_prefix(session, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_issued_can_be_an_id() {
        let id = format!("file_{}", "0123456789abcdef".repeat(2));
        assert!(SessionFile::is_id(&id));
        for wrong in [
            "",
            "file_",
            &id[..36],
            &format!("{id}0"),
            &id.to_uppercase(),
            "../../etc/passwd",
            "file_../../../../../../etc/passwd00000",
            "file_0123456789abcdef0123456789abcde/",
            "file_0123456789abcdef0123456789abcdé",
        ] {
            assert!(!SessionFile::is_id(wrong), "{wrong}");
        }
    }
}
