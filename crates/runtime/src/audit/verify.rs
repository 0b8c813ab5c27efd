//! Whether a log is whole. The command line and the deck both ask here.

use std::path::Path;
use std::time::Duration;

use quarterdeck_contracts::{DiskError, Store, Table};
use serde::Serialize;

use super::chain::ChainHead;
use super::follow::{ChainCheck, follow};
use super::seal_check::SealCheck;
use super::segment::SegmentFiles;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// How many lines are sound, from the first that is kept on.
    pub lines: u64,
    /// How many of them come after the last one that the store knows. A crash leaves a few, and a store that was put
    /// back from a backup more; nothing protects them from being cut off, and any process that can write the file could
    /// have added them.
    pub unconfirmed: u64,
    /// What is wrong, and where.
    pub fault: Option<String>,
    /// How many segments before the newest one were read.
    pub closed_segments: u64,
    /// What retention has cut from the beginning, as the log itself records it.
    pub cut: Option<AuditCut>,
    /// What the seal file says; absent where none was compared.
    pub seals: Option<SealVerification>,
}

/// Lines that are no longer kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditCut {
    pub lines: u64,
    /// Everything since then is kept; empty where lines were kept longer than recorded.
    pub since: String,
}

/// How the ends of closed segments compare with the seal file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SealVerification {
    /// How many agree.
    pub sealed: u64,
    /// How many of the last ones are not sealed yet.
    pub unsealed: u64,
}

/// How often a log is looked at again that seems faulty because it is being changed at this moment: its last line has no
/// end yet, or a segment is being closed or cut.
const MAX_ATTEMPTS: u32 = 4;
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Reads a log from its first line to its last, compares the end with the head in the store, and takes the
/// log's own gap lines at their word. It blocks while it reads.
pub async fn verify(path: &Path, node: &str, store: &dyn Store) -> Result<Verification, String> {
    verify_sealed(path, node, store, None).await
}

/// The same, and compares the ends of closed segments with those in the seal file.
pub async fn verify_sealed(
    path: &Path,
    node: &str,
    store: &dyn Store,
    seal_file: Option<&Path>,
) -> Result<Verification, String> {
    let mut tries = 1;
    loop {
        let (found, is_unfinished) = look(path, node, store, seal_file).await?;
        if !is_unfinished || tries == MAX_ATTEMPTS {
            return Ok(found);
        }
        tries += 1;
        std::thread::sleep(RETRY_DELAY);
    }
}

/// What is found at this moment, and whether it may be another a moment later.
async fn look(
    path: &Path,
    node: &str,
    store: &dyn Store,
    seal_file: Option<&Path>,
) -> Result<(Verification, bool), String> {
    let kept = stored_head(node, store).await?;
    let unreadable =
        |path: &Path, error| format!("cannot read {}: {}", path.display(), DiskError::explain(&error));
    let seals = seal_file.map(|file| SealCheck::open(file, node).map_err(|error| unreadable(file, error)));
    let seals = seals.transpose()?;
    let files = SegmentFiles::new(path);
    let is_missing = || -> std::io::Result<bool> { Ok(!path.try_exists()? && files.list()?.is_empty()) };
    if is_missing().map_err(|error| unreadable(path, error))? {
        return Ok((without_file(kept.as_ref()), false));
    }
    let mut chain = ChainCheck::new(kept.as_ref(), seals);
    follow(&mut chain, &files, kept.as_ref()).map_err(|error| unreadable(path, error))?;
    let is_unfinished = chain.is_unfinished();
    Ok((chain.verdict(kept.as_ref()), is_unfinished))
}

/// The end of a chain, as the store knows it.
pub(super) async fn stored_head(node: &str, store: &dyn Store) -> Result<Option<ChainHead>, String> {
    let row = store.get(Table::Audit, node).await.map_err(|error| error.to_string())?;
    let unreadable = |_| format!("the store's head of the trail of {node} cannot be read");
    row.map(|row| serde_json::from_value(row.value).map_err(unreadable)).transpose()
}

/// A log that the store knows was there.
fn without_file(kept: Option<&ChainHead>) -> Verification {
    let fault = kept.map(|kept| {
        format!(
            "the trail is missing, and the store knows one whose last line is number {}: it was removed",
            kept.seq
        )
    });
    Verification { fault, ..Verification::default() }
}
