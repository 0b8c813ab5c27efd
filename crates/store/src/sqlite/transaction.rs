//! The transaction that a group of commits shares.

use std::sync::Arc;

use quarterdeck_contracts::{CommitError, StoreError};
use rusqlite::Connection;

use super::health::Health;
use super::rows::{self, EncodedCommit, ReadQuery, StoredRow};

/// The writing connection, and what is open on it.
///
/// A failure belongs to a commit as long as SQLite can undo that commit alone. When it cannot, or cannot even begin,
/// the whole group has failed, and nothing more is tried until it has ended.
pub(super) struct Transaction {
    connection: Connection,
    health: Arc<Health>,
    state: State,
    /// Of the last commit. It never goes back, not even with a transaction that is rolled back: a row with it may have
    /// been read.
    version: i64,
}

enum State {
    Closed,
    /// With the file's version when it began.
    Open(i64),
    /// Rolled back already; its commits still have to be answered.
    Lost(StoreError),
}

impl Transaction {
    pub(super) fn new(connection: Connection, health: Arc<Health>) -> Self {
        Self { connection, health, state: State::Closed, version: 0 }
    }

    /// Reads what was applied so far, too.
    pub(super) fn read(&self, query: &ReadQuery) -> Result<Vec<StoredRow>, StoreError> {
        query.read(&self.connection).map_err(|error| self.health.failed(error))
    }

    /// Applies a commit if its checks hold; otherwise the group is as it was.
    pub(super) fn apply(&mut self, commit: &EncodedCommit) -> Result<u64, CommitError> {
        self.begin()?;
        match commit.failed_check(&self.connection) {
            Ok(None) => {}
            Ok(Some(check)) => {
                return Err(CommitError::Conflict { table: check.table, key: check.key.clone() });
            }
            Err(error) => return Err(self.failed(error).into()),
        }
        let windows = match commit.take(&self.connection) {
            Ok(taken) => taken?,
            Err(error) => return Err(self.failed(error).into()),
        };
        if commit.is_empty() && windows.is_empty() {
            return Ok(0);
        }
        self.version += 1;
        let version = self.version;
        self.in_savepoint(|connection| {
            commit.write(connection, version)?;
            windows.iter().try_for_each(|window| window.write(connection, version))
        })?;
        Ok(version.unsigned_abs())
    }

    /// Deletes at most `limit` expired rows.
    pub(super) fn sweep(&mut self, now_ms: u64, limit: usize) -> Result<u64, StoreError> {
        self.begin()?;
        self.in_savepoint(|connection| rows::sweep(connection, now_ms, limit)).map(|swept| swept as u64)
    }

    /// Ends the group: what was applied is on the disk, or undone.
    pub(super) fn end(&mut self) -> Result<(), StoreError> {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Closed => Ok(()),
            State::Lost(error) => Err(error),
            State::Open(before) => {
                let ended = self.finish(before);
                if ended.is_err() {
                    self.undo();
                }
                ended
            }
        }
    }

    /// Whether the group has failed as a whole.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self.state, State::Lost(_))
    }

    /// Moves everything from the log to the file.
    pub(super) fn checkpoint(&self) -> Result<(), StoreError> {
        // A reader may be in the way; then the log stays for the next process that opens the file.
        let done = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        done.map_err(|error| self.health.failed(error))
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        match &self.state {
            State::Open(_) => return Ok(()),
            State::Lost(error) => return Err(error.clone()),
            State::Closed => {}
        }
        if let Some(error) = self.health.refusal() {
            self.state = State::Lost(error.clone());
            return Err(error);
        }
        // The file's number is read anew each time, because another process may have written.
        let begun = self
            .connection
            .prepare_cached("BEGIN IMMEDIATE")
            .and_then(|mut begin| begin.execute([]))
            .and_then(|_| rows::last_version(&self.connection));
        match begun {
            Ok(version) => {
                self.version = self.version.max(version);
                self.state = State::Open(self.version);
                Ok(())
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    /// A group that wrote nothing leaves the file alone, so that a failed check costs no sync.
    fn finish(&self, before: i64) -> Result<(), StoreError> {
        self.health.check_in_place()?;
        let commit = || {
            if self.version > before {
                rows::set_last_version(&self.connection, self.version)?;
            }
            self.connection.prepare_cached("COMMIT")?.execute([]).map(drop)
        };
        commit().map_err(|error| self.health.failed(error))
    }

    /// Does something completely or not at all, within the group.
    fn in_savepoint<T>(
        &mut self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let step = |sql: &str| self.connection.prepare_cached(sql)?.execute([]).map(drop);
        let done = step("SAVEPOINT one_commit").and_then(|()| work(&self.connection));
        let ended = match done {
            Ok(value) => step("RELEASE one_commit").map(|()| Ok(value)),
            Err(error) => {
                let undone = step("ROLLBACK TO one_commit").and_then(|()| step("RELEASE one_commit"));
                undone.map(|()| Err(self.health.failed(error)))
            }
        };
        // SQLite may answer a full disk by undoing the whole transaction.
        ended.unwrap_or_else(|error| Err(self.failed(error)))
    }

    /// Rolls the group back at once, so that no reader sees what will not be committed.
    fn failed(&mut self, error: rusqlite::Error) -> StoreError {
        self.undo();
        let error = self.health.failed(error);
        self.state = State::Lost(error.clone());
        error
    }

    fn undo(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "store rollback failed");
        }
    }
}
