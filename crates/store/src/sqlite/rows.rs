//! Rows as they stand in the file: every statement that reads or writes them.

use std::ops::ControlFlow;

use quarterdeck_contracts::{Check, Commit, CommitError, Row, Scan, StoreError, Table, Take, Taken};
use rusqlite::{Connection, OptionalExtension, params};

use super::checksum::checksum;
use super::schema;

/// A row whose value is still text: callers parse it, not the store's threads.
pub(super) struct StoredRow {
    key: String,
    value: String,
    version: i64,
    expires_ms: Option<i64>,
    sum: Option<i64>,
}

impl StoredRow {
    pub(super) fn decode(self, table: Table) -> Result<(String, Row), StoreError> {
        let damaged = || {
            StoreError::Failed(format!(
                "a row of `{}` is damaged: it is not what was written; restore a backup",
                table.as_str()
            ))
        };
        if !matches_checksum(self.sum, table.as_str(), &self.key, &self.value, self.version, self.expires_ms)
        {
            return Err(damaged());
        }
        let value = serde_json::from_str(&self.value).map_err(|_| damaged())?;
        let version = u64::try_from(self.version).map_err(|_| damaged())?;
        Ok((self.key, Row { value, version }))
    }

    fn from_sql(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            key: row.get(0)?,
            value: row.get(1)?,
            version: row.get(2)?,
            expires_ms: row.get(3)?,
            sum: row.get(4)?,
        })
    }
}

/// A row as it stands in the file, of whatever table, for the check.
pub(super) struct RawRow<'a> {
    table: &'a str,
    key: &'a str,
    value: &'a str,
    version: i64,
    expires_ms: Option<i64>,
    sum: Option<i64>,
}

impl RawRow<'_> {
    pub(super) fn table(&self) -> &str {
        self.table
    }

    pub(super) fn version(&self) -> i64 {
        self.version
    }

    /// Whether it is what was written, as far as can be told: one without a checksum must at least be JSON.
    pub(super) fn is_sound(&self) -> bool {
        match self.sum {
            Some(_) => {
                matches_checksum(self.sum, self.table, self.key, self.value, self.version, self.expires_ms)
            }
            None => serde_json::from_str::<serde_json::Value>(self.value).is_ok(),
        }
    }
}

/// Calls `look` with every row of a file of some format, until it breaks; with `None` for a row that cannot be read.
pub(super) fn each(
    connection: &Connection,
    format: i64,
    mut look: impl FnMut(Option<&RawRow<'_>>) -> ControlFlow<()>,
) -> rusqlite::Result<ControlFlow<()>> {
    let sum = if format < schema::FIRST_WITH_CHECKSUMS { "NULL" } else { "sum" };
    let sql = format!("SELECT table_name, key, value, version, expires_ms, {sum} FROM rows");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if look(raw(row).ok().as_ref()).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn raw<'a>(row: &'a rusqlite::Row<'_>) -> rusqlite::Result<RawRow<'a>> {
    Ok(RawRow {
        table: row.get_ref(0)?.as_str()?,
        key: row.get_ref(1)?.as_str()?,
        value: row.get_ref(2)?.as_str()?,
        version: row.get(3)?,
        expires_ms: row.get(4)?,
        sum: row.get(5)?,
    })
}

/// Rows that were written before there were checksums have none.
pub(super) fn matches_checksum(
    sum: Option<i64>,
    table: &str,
    key: &str,
    value: &str,
    version: i64,
    expires_ms: Option<i64>,
) -> bool {
    sum.is_none_or(|sum| sum == checksum(table, key, value, version, expires_ms))
}

/// A commit whose values are text already, so that the writer only writes.
pub(super) struct EncodedCommit {
    checks: Vec<Check>,
    takes: Vec<Take>,
    changes: Vec<Change>,
}

pub(super) struct Change {
    table: Table,
    key: String,
    value: Option<String>,
    expires_ms: Option<i64>,
}

impl EncodedCommit {
    pub(super) fn new(commit: Commit) -> Self {
        let changes = commit.writes.into_iter().map(|write| Change {
            table: write.table,
            key: write.key,
            value: write.value.map(|value| value.to_string()),
            expires_ms: write.expires_ms.map(clamp),
        });
        Self { checks: commit.checks, takes: commit.takes, changes: changes.collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = (Table, &str)> {
        let changed = self.changes.iter().map(|change| (change.table, change.key.as_str()));
        changed.chain(self.takes.iter().map(|take| (Table::Rates, take.key.as_str())))
    }

    pub(super) fn size(&self) -> usize {
        let row = |key: &str, value: Option<&str>| 64 + key.len() + value.map_or(0, str::len);
        let checks: usize = self.checks.iter().map(|check| row(&check.key, None)).sum();
        let changes: usize =
            self.changes.iter().map(|change| row(&change.key, change.value.as_deref())).sum();
        checks + changes
    }

    /// The first check that does not hold.
    pub(super) fn failed_check(&self, connection: &Connection) -> rusqlite::Result<Option<&Check>> {
        let mut versions =
            connection.prepare_cached("SELECT version FROM rows WHERE table_name = ?1 AND key = ?2")?;
        for check in &self.checks {
            let stored: Option<i64> =
                versions.query_row(params![check.table.as_str(), check.key], |row| row.get(0)).optional()?;
            let expected = check.version.map(clamp);
            if stored != expected {
                return Ok(Some(check));
            }
        }
        Ok(None)
    }

    /// The windows of its rate limits as they become, unless one has no room.
    pub(super) fn take(&self, connection: &Connection) -> rusqlite::Result<Result<Vec<Change>, CommitError>> {
        let mut windows = Vec::new();
        for take in &self.takes {
            let row = get(connection, Table::Rates, &take.key)?;
            // A window that cannot be read is begun anew; the check of the file reports it.
            let stored = row.and_then(|row| serde_json::from_str(&row.value).ok());
            match take.count_in(stored, take.now_ms) {
                Taken::Counted { window, expires_ms } => windows.push(Change {
                    table: Table::Rates,
                    key: take.key.clone(),
                    value: Some(window.to_string()),
                    expires_ms: Some(clamp(expires_ms)),
                }),
                Taken::Refused { retry_after_ms } => {
                    return Ok(Err(CommitError::Exhausted { key: take.key.clone(), retry_after_ms }));
                }
            }
        }
        Ok(Ok(windows))
    }

    /// Writes every change, under one version.
    pub(super) fn write(&self, connection: &Connection, version: i64) -> rusqlite::Result<()> {
        self.changes.iter().try_for_each(|change| change.write(connection, version))
    }
}

impl Change {
    pub(super) fn write(&self, connection: &Connection, version: i64) -> rusqlite::Result<()> {
        let Self { table, key, value, expires_ms } = self;
        match value {
            Some(value) => connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO rows (table_name, key, value, version, expires_ms, sum)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute(params![
                    table.as_str(),
                    key,
                    value,
                    version,
                    expires_ms,
                    checksum(table.as_str(), key, value, version, *expires_ms)
                ])?,
            None => connection
                .prepare_cached("DELETE FROM rows WHERE table_name = ?1 AND key = ?2")?
                .execute(params![table.as_str(), key])?,
        };
        Ok(())
    }
}

pub(super) enum ReadQuery {
    Get { table: Table, key: String },
    Scan { table: Table, scan: Scan },
}

impl ReadQuery {
    pub(super) fn read(&self, connection: &Connection) -> rusqlite::Result<Vec<StoredRow>> {
        match self {
            Self::Get { table, key } => get(connection, *table, key).map(Vec::from_iter),
            Self::Scan { table, scan: range } => scan(connection, *table, range),
        }
    }
}

fn get(connection: &Connection, table: Table, key: &str) -> rusqlite::Result<Option<StoredRow>> {
    connection
        .prepare_cached(
            "SELECT key, value, version, expires_ms, sum FROM rows WHERE table_name = ?1 AND key = ?2",
        )?
        .query_row(params![table.as_str(), key], StoredRow::from_sql)
        .optional()
}

/// Walks the keys in their order and stops at the first without the prefix: no pattern to escape, no upper bound to
/// compute.
fn scan(connection: &Connection, table: Table, scan: &Scan) -> rusqlite::Result<Vec<StoredRow>> {
    let (sql, from) = match &scan.after {
        Some(after) if *after >= scan.prefix => (
            "SELECT key, value, version, expires_ms, sum FROM rows
             WHERE table_name = ?1 AND key > ?2 ORDER BY key LIMIT ?3",
            after,
        ),
        _ => (
            "SELECT key, value, version, expires_ms, sum FROM rows
             WHERE table_name = ?1 AND key >= ?2 ORDER BY key LIMIT ?3",
            &scan.prefix,
        ),
    };
    let limit = i64::try_from(scan.limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![table.as_str(), from, limit])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        // The key is looked at before the value is copied: the first row beyond the prefix may be a large one.
        if !row.get_ref(0)?.as_str()?.starts_with(&scan.prefix) {
            break;
        }
        found.push(StoredRow::from_sql(row)?);
    }
    Ok(found)
}

/// Deletes at most `limit` expired rows. The row itself is checked too: a damaged index must not delete a row that is
/// still wanted.
pub(super) fn sweep(connection: &Connection, now_ms: u64, limit: usize) -> rusqlite::Result<usize> {
    connection
        .prepare_cached(
            "DELETE FROM rows WHERE (table_name, key) IN
             (SELECT table_name, key FROM rows WHERE expires_ms <= ?1 LIMIT ?2) AND expires_ms <= ?1",
        )?
        .execute(params![clamp(now_ms), i64::try_from(limit).unwrap_or(i64::MAX)])
}

pub(super) fn last_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("SELECT value FROM meta WHERE name = 'version'")?
        .query_row([], |row| row.get(0))
}

pub(super) fn set_last_version(connection: &Connection, version: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE meta SET value = ?1 WHERE name = 'version'")?
        .execute([version])
        .map(drop)
}

/// SQLite's integers have a sign. What lies beyond is as good as for ever.
fn clamp(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
