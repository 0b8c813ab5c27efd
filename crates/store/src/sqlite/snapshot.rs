//! Every row of a file as of one moment, for a copy to another engine; and what gives unused pages back to the disk.

use std::path::{Path, PathBuf};

use quarterdeck_contracts::{StoreError, Table};
use rusqlite::{Connection, params};

use super::health::Health;
use super::open::{DEFAULT_BUSY_TIMEOUT, OpenError, connect, engine_error, open_reader};
use super::rows::matches_checksum;
use crate::export::ExportedRow;

/// The rows of a file, of the moment when it was opened, whatever is committed since.
pub struct SqliteSnapshot {
    connection: Connection,
    path: PathBuf,
}

impl SqliteSnapshot {
    /// Opens a file that [`super::SqliteStore::open`] has found to be a sound store of today's format.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let begin = || {
            let connection = open_reader(path, DEFAULT_BUSY_TIMEOUT)?;
            connection.execute_batch("BEGIN")?;
            // The moment is that of the first read.
            connection.query_row("SELECT count(*) FROM meta", [], |_| Ok(()))?;
            Ok(connection)
        };
        let connection = begin().map_err(|source| engine_error(source, path))?;
        Ok(Self { connection, path: path.to_owned() })
    }

    /// The rows of a table after a key, in the order of keys.
    pub fn rows(
        &self,
        table: Table,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ExportedRow>, StoreError> {
        let read = || {
            let sql = "SELECT key, value, version, expires_ms, sum FROM rows
                       WHERE table_name = ?1 AND (?2 IS NULL OR key > ?2) ORDER BY key LIMIT ?3";
            let mut statement = self.connection.prepare_cached(sql)?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows = statement.query_map(params![table.as_str(), after, limit], |row| {
                let (key, value): (String, String) = (row.get(0)?, row.get(1)?);
                let expires_ms: Option<i64> = row.get(3)?;
                let is_sound =
                    matches_checksum(row.get(4)?, table.as_str(), &key, &value, row.get(2)?, expires_ms);
                let expires_ms = expires_ms.map(|at| u64::try_from(at).unwrap_or(0));
                Ok((ExportedRow { table, key, value, expires_ms }, is_sound))
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        let rows = read().map_err(|error| Health::new(&self.path).failed(error))?;
        let sound = |(row, is_sound): (ExportedRow, bool)| match is_sound {
            true => Ok(row),
            false => Err(StoreError::Failed(format!(
                "a row of `{}` is damaged: it is not what was written; restore a backup",
                table.as_str()
            ))),
        };
        rows.into_iter().map(sound).collect()
    }
}

/// Rewrites a file without the pages that nothing uses, and says how many bytes it had before and has now. It needs as much
/// room on the disk again, and fails when another process writes to the file.
pub fn vacuum(path: &Path) -> Result<(u64, u64), StoreError> {
    let size = || std::fs::metadata(path).map_or(0, |found| found.len());
    let before = size();
    let run = || {
        let connection = connect(path, DEFAULT_BUSY_TIMEOUT)?;
        connection.execute_batch("VACUUM; ANALYZE;")?;
        // The rewritten pages are in the log until now.
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
    };
    run().map_err(|error| Health::new(path).failed(error))?;
    Ok((before, size()))
}
