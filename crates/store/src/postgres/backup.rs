//! A copy of everything, as of one moment, in a new file, which is a store of one machine.

use std::path::{Path, PathBuf};

use quarterdeck_contracts::{Commit, CommitError, DiskError, Store, StoreError, Table};
use quarterdeck_postgres::Database;
use tempfile::NamedTempFile;
use tokio::task::spawn_blocking;

use super::snapshot::PostgresSnapshot;
use crate::sqlite::SqliteStore;

/// Rows in one commit of the file.
const BATCH_ROWS: usize = 500;

/// Under a temporary name until it is complete, so that `to` never holds half a backup.
pub(super) async fn write(database: &Database, to: PathBuf) -> Result<(), StoreError> {
    if to.symlink_metadata().is_ok() {
        return Err(exists(&to));
    }
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = folder.to_owned();
    let partial = NamedTempFile::new_in(&folder).map_err(|error| io_failed(&error))?;
    let path = partial.path().to_owned();
    let opened = spawn_blocking(move || SqliteStore::open(path)).await.map_err(|_| StoreError::Closed)?;
    let file = opened.map_err(|error| StoreError::Failed(error.to_string()))?;
    copy(database, &file).await?;
    file.close().await?;
    let kept = spawn_blocking(move || {
        drop(file);
        partial.as_file().sync_all().map_err(|error| io_failed(&error))?;
        partial.persist_noclobber(&to).map_err(|failure| match failure.error.kind() {
            std::io::ErrorKind::AlreadyExists => exists(&to),
            _ => io_failed(&failure.error),
        })?;
        std::fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| io_failed(&error))
    });
    kept.await.unwrap_or(Err(StoreError::Closed))
}

async fn copy(database: &Database, file: &SqliteStore) -> Result<(), StoreError> {
    let snapshot = PostgresSnapshot::open(database).await?;
    for table in Table::ALL {
        let mut after: Option<String> = None;
        loop {
            let rows = snapshot.rows(table, after.as_deref(), BATCH_ROWS).await?;
            let Some(last) = rows.last() else { break };
            after = Some(last.key.clone());
            let mut commit = Commit::default();
            for row in rows {
                let value = serde_json::from_str(&row.value).map_err(|_| {
                    StoreError::Failed(format!("a row of `{}` is not what was written", table.as_str()))
                })?;
                commit = commit.put_until(table, row.key, value, row.expires_ms);
            }
            file.commit(commit).await.map_err(CommitError::into_store_error)?;
        }
    }
    Ok(())
}

fn exists(to: &Path) -> StoreError {
    StoreError::Failed(format!("{} exists already; a backup never overwrites", to.display()))
}

fn io_failed(error: &std::io::Error) -> StoreError {
    StoreError::Failed(format!("the backup could not be written: {}", DiskError::explain(error)))
}
