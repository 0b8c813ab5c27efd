//! Whether the file can still be trusted while it is in use.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use quarterdeck_contracts::StoreError;

use super::fault::{self, Fault};

pub(super) struct Health {
    path: PathBuf,
    identity: Option<Identity>,
    damage: OnceLock<String>,
}

impl Health {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), identity: identity(path), damage: OnceLock::new() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// From now on nothing more is written: a change to a damaged file makes it worse.
    pub(super) fn mark_damaged(&self, what: &str) {
        if self.damage.set(what.to_owned()).is_ok() {
            tracing::error!(
                path = %self.path.display(), damage = what,
                "store is damaged and no longer written to; stop the server and restore a backup"
            );
        }
    }

    /// Why nothing may be written, if that is so.
    pub(super) fn refusal(&self) -> Option<StoreError> {
        let what = self.damage.get()?;
        Some(StoreError::Failed(format!(
            "{} is damaged: {what}; stop the server and restore a backup",
            self.path.display()
        )))
    }

    /// Fails when the path no longer leads to the file that is written to. One that was deleted or replaced takes every
    /// write with it when it is closed.
    pub(super) fn check_in_place(&self) -> Result<(), StoreError> {
        if self.identity.is_none() || identity(&self.path) == self.identity {
            return Ok(());
        }
        Err(StoreError::Failed(format!(
            "{} was removed or replaced while it was in use; put it back, or stop the server and restore a backup",
            self.path.display()
        )))
    }

    /// What the engine says, for the operator. It names statements and pages, never values.
    pub(super) fn failed(&self, error: rusqlite::Error) -> StoreError {
        match fault::classify(&error, &self.path) {
            Fault::Disk(disk) => StoreError::Failed(format!("{disk} ({error})")),
            Fault::Damage => {
                self.mark_damaged(&error.to_string());
                self.refusal().unwrap_or_else(|| StoreError::Failed(error.to_string()))
            }
            Fault::Row => StoreError::Failed(format!("a row is damaged: {error}; restore a backup")),
            Fault::Busy | Fault::Other => StoreError::Failed(error.to_string()),
        }
    }
}

/// What tells a file from another one of the same name: its device and its number there.
type Identity = (u64, u64);

#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// Elsewhere a file that is open cannot be replaced.
#[cfg(not(unix))]
fn identity(_: &Path) -> Option<Identity> {
    None
}
