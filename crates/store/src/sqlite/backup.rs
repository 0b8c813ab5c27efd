//! A copy of everything, as of one moment, while work goes on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use quarterdeck_contracts::{DiskError, StoreError};
use tempfile::NamedTempFile;
use tokio::sync::oneshot;

use super::file;
use super::health::Health;
use super::open::{DEFAULT_BUSY_TIMEOUT, connect};

/// Copies on a thread of its own, and answers when the copy is on the disk.
pub(super) fn start(health: Arc<Health>, to: PathBuf, answer: oneshot::Sender<Result<(), StoreError>>) {
    let copying = thread::Builder::new()
        .name("store-backup".into())
        .spawn(move || drop(answer.send(copy(&health, &to))));
    // The answer was dropped with the closure, so the caller gets an error.
    if let Err(error) = copying {
        tracing::error!(%error, "backup thread failed to start");
    }
}

/// Under a temporary name until it is complete, so that `to` never holds half a backup.
fn copy(health: &Health, to: &Path) -> Result<(), StoreError> {
    if to.symlink_metadata().is_ok() {
        return Err(exists(to));
    }
    // A temporary file is its owner's alone, and SQLite copies into a file that is empty.
    let partial = NamedTempFile::new_in(file::folder_of(to)).map_err(io_failed)?;
    let name = partial.path().to_str().ok_or_else(|| {
        StoreError::Failed("a backup needs a path that is valid Unicode; choose another".to_owned())
    })?;
    let copied =
        connect(health.path(), DEFAULT_BUSY_TIMEOUT).and_then(|from| from.execute("VACUUM INTO ?1", [name]));
    copied.map_err(|error| health.failed(error))?;
    partial.as_file().sync_all().map_err(io_failed)?;
    partial.persist_noclobber(to).map_err(|failure| match failure.error.kind() {
        std::io::ErrorKind::AlreadyExists => exists(to),
        _ => io_failed(failure.error),
    })?;
    file::sync_folder_of(to).map_err(io_failed)
}

fn exists(to: &Path) -> StoreError {
    StoreError::Failed(format!("{} exists already; a backup never overwrites", to.display()))
}

fn io_failed(error: std::io::Error) -> StoreError {
    StoreError::Failed(format!("the backup could not be written: {}", DiskError::explain(&error)))
}
