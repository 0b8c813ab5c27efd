//! Bundles in the store, in pieces, so that every node can load a version that one of them was given.

use quarterdeck_contracts::{Commit, CommitError, Store, StoreError, Table, sha256};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::registry::{Bundle, BundleError, MAX_BUNDLE_BYTES, VersionError};
use crate::store_keys::all_rows;

/// The size of a piece. A row of this size goes through every engine, and a commit of a few of them.
const PIECE_BYTES: usize = 256 << 10;
const PIECES_PER_COMMIT: usize = 8;
const MAX_PIECES: usize = MAX_BUNDLE_BYTES / PIECE_BYTES + 1;

/// What is known of a bundle. It is written when all pieces are there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    /// Of all pieces together. Builds of one digest may differ in their time stamp, so pieces are kept under this.
    sha256: String,
    pieces: usize,
    bytes: usize,
    stored_ms: u64,
}

fn head_key(digest: &str) -> String {
    format!("h/{digest}")
}

fn piece_key(sha256: &str, number: usize) -> String {
    format!("p/{sha256}/{number:04}")
}

fn store_failed(error: &dyn std::fmt::Display) -> VersionError {
    VersionError::Store(error.to_string())
}

fn damaged(digest: &str, reason: impl Into<String>) -> VersionError {
    BundleError::DamagedInStore { digest: digest.to_owned(), reason: reason.into() }.into()
}

async fn find_head(store: &dyn Store, digest: &str) -> Result<Option<Head>, StoreError> {
    let row = store.get(Table::Bundles, &head_key(digest)).await?;
    Ok(row.and_then(|row| serde_json::from_value(row.value).ok()))
}

pub(super) async fn contains(store: &dyn Store, digest: &str) -> Result<bool, StoreError> {
    Ok(find_head(store, digest).await?.is_some())
}

/// Stores a bundle, unless it is there. Another node sees it whole or not at all.
pub(super) async fn save(store: &dyn Store, bundle: &Bundle, now_ms: u64) -> Result<(), VersionError> {
    if contains(store, bundle.digest()).await.map_err(|error| store_failed(&error))? {
        return Ok(());
    }
    let text = bundle.to_json();
    let pieces = split(&text);
    let head =
        Head { sha256: sha256(text.as_bytes()), pieces: pieces.len(), bytes: text.len(), stored_ms: now_ms };
    for (group, portion) in pieces.chunks(PIECES_PER_COMMIT).enumerate() {
        let commit = portion.iter().enumerate().fold(Commit::default(), |commit, (place, piece)| {
            let key = piece_key(&head.sha256, group * PIECES_PER_COMMIT + place);
            commit.put(Table::Bundles, key, Value::from(*piece))
        });
        store.commit(commit).await.map_err(|error| store_failed(&error))?;
    }
    let key = head_key(bundle.digest());
    let commit =
        Commit::default().check(Table::Bundles, key.clone(), None).put(Table::Bundles, key, json!(head));
    match store.commit(commit).await {
        // Another node was quicker, perhaps with another build of it.
        Ok(_) | Err(CommitError::Conflict { .. }) => Ok(()),
        Err(error) => Err(store_failed(&error)),
    }
}

/// A stored bundle, verified; `None` when there is none. One that is damaged is forgotten, so that it can be stored again.
pub(super) async fn load(store: &dyn Store, digest: &str) -> Result<Option<Bundle>, VersionError> {
    let Some(head) = find_head(store, digest).await.map_err(|error| store_failed(&error))? else {
        return Ok(None);
    };
    let found = assemble(store, digest, &head).await;
    let is_damaged = matches!(found, Err(VersionError::Bundle(_) | VersionError::Load(_)));
    if is_damaged && store.queue(Commit::default().delete(Table::Bundles, head_key(digest))).is_err() {
        tracing::warn!(digest, "damaged version stays in the store");
    }
    found.map(Some)
}

async fn assemble(store: &dyn Store, digest: &str, head: &Head) -> Result<Bundle, VersionError> {
    if head.pieces > MAX_PIECES || head.bytes > MAX_BUNDLE_BYTES {
        return Err(damaged(digest, "it is larger than any version"));
    }
    let mut text = String::with_capacity(head.bytes);
    for number in 0..head.pieces {
        let row = store.get(Table::Bundles, &piece_key(&head.sha256, number)).await;
        let row = row.map_err(|error| store_failed(&error))?;
        let piece = row.as_ref().and_then(|row| row.value.as_str());
        let piece = piece.ok_or_else(|| damaged(digest, format!("piece {number} is missing")))?;
        if text.len() + piece.len() > head.bytes {
            return Err(damaged(digest, "it is longer than it was"));
        }
        text.push_str(piece);
    }
    if sha256(text.as_bytes()) != head.sha256 {
        return Err(damaged(digest, "its bytes have changed"));
    }
    let bundle = Bundle::from_json(&text)?;
    if bundle.digest() != digest {
        return Err(damaged(digest, format!("it holds {}", bundle.digest())));
    }
    Ok(bundle)
}

/// Removes the oldest bundles beyond a number, but none in use.
pub(super) async fn remove_oldest(
    store: &dyn Store,
    max_stored: usize,
    is_used: impl Fn(&str) -> bool,
) -> Result<(), CommitError> {
    let rows = all_rows(store, Table::Bundles, &head_key("")).await?;
    let heads = rows.into_iter().filter_map(|(key, value)| {
        let digest = key.strip_prefix("h/")?.to_owned();
        Some((digest, serde_json::from_value::<Head>(value).ok()?))
    });
    let mut unused: Vec<_> = heads.filter(|(digest, _)| !is_used(digest)).collect();
    unused.sort_by_key(|(_, head)| std::cmp::Reverse(head.stored_ms));
    for (digest, head) in unused.into_iter().skip(max_stored) {
        let commit = Commit::default().delete(Table::Bundles, head_key(&digest));
        let pieces = (0..head.pieces.min(MAX_PIECES)).map(|number| piece_key(&head.sha256, number));
        store.commit(pieces.fold(commit, |commit, key| commit.delete(Table::Bundles, key))).await?;
    }
    Ok(())
}

/// A text in pieces that are not longer than a row should be.
fn split(mut text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    while !text.is_empty() {
        let (piece, rest) = text.split_at(text.floor_char_boundary(PIECE_BYTES));
        pieces.push(piece);
        text = rest;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_short_and_make_up_the_whole() {
        for text in ["", "a", &"ä€😀".repeat(100_000)] {
            let pieces = split(text);
            assert_eq!(pieces.concat(), text);
            assert!(pieces.iter().all(|piece| !piece.is_empty() && piece.len() <= PIECE_BYTES));
        }
    }
}
