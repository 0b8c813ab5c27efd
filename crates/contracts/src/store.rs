//! Where everything is kept that outlives a process.
//!
//! A store is a few named tables of JSON rows and one way to change them: a [`Commit`], whose checks and writes hold
//! together or not at all. What the rows mean is the business of those who write them; so an engine is small, and
//! whatever must be decided between sessions, processes or nodes is decided by one atomic step.

use serde_json::Value;

use crate::handler::BoxFuture;

/// Keeps rows.
///
/// An implementation may rely on nothing but what it is given. It must not lose a commit that it has acknowledged,
/// must not show half of one, and must answer reads with everything that was committed or queued before them.
pub trait Store: Send + Sync {
    /// One row.
    fn get(&self, table: Table, key: &str) -> BoxFuture<Result<Option<Row>, StoreError>>;

    /// The rows of a table whose keys begin with a prefix, in the order of their keys (by bytes).
    fn scan(&self, table: Table, scan: Scan) -> BoxFuture<Result<Vec<(String, Row)>, StoreError>>;

    /// Applies a commit if all its checks hold. It is durable when the future ends.
    ///
    /// A value may nest 127 levels deep: what is deeper could be written but not parsed again, and is refused.
    ///
    /// The work goes on when the future is dropped: a commit is never half applied.
    fn commit(&self, commit: Commit) -> BoxFuture<Result<(), CommitError>>;

    /// Takes a commit to be applied soon, without waiting for it and before every later commit. A crash may lose it,
    /// and one whose checks fail is dropped. Refuses when too many are waiting, so that memory stays bounded.
    fn queue(&self, commit: Commit) -> Result<(), StoreError>;

    /// Forgets the rows whose time has come, and says how many.
    fn sweep(&self, now_ms: u64) -> BoxFuture<Result<u64, StoreError>>;

    /// Writes what is queued and closes the engine. Later requests fail with [`StoreError::Closed`]. An error means that
    /// queued commits were lost. An engine without anything to close has nothing to do.
    fn close(&self) -> BoxFuture<Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// The tables. Each has one owner in the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// What was said, by session and turn, and which session a client's chat is in.
    History,
    /// Sessions by id, and the ids that were issued for sessions to come.
    Sessions,
    /// What calls came to, by session and idempotency key.
    Calls,
    /// Requests for confirmation, by the hash of their token.
    Confirmations,
    /// The index of `Confirmations` by session and hash, so that resuming a session reads its own and no others.
    SessionConfirmations,
    /// Calls that go on in the background and what they came to, by client and task.
    Tasks,
    /// Blocked clients.
    Blocks,
    /// Windows of rate limits.
    Rates,
    /// Small values of tools, by client and tool.
    Values,
    /// Events, by calendar.
    Calendar,
    /// Files of sessions: what is known of each, and its bytes in pieces.
    Files,
    /// Heads of the audit chains, by node.
    Audit,
    /// Invitations that are to be sent.
    Outbox,
    /// The registry's loaded versions with their rollout, and the sessions of each.
    Versions,
}

impl Table {
    /// Every table.
    pub const ALL: [Self; 14] = [
        Self::History,
        Self::Sessions,
        Self::Calls,
        Self::Confirmations,
        Self::SessionConfirmations,
        Self::Tasks,
        Self::Blocks,
        Self::Rates,
        Self::Values,
        Self::Calendar,
        Self::Files,
        Self::Audit,
        Self::Outbox,
        Self::Versions,
    ];

    /// The name in an engine.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::History => "history",
            Self::Sessions => "sessions",
            Self::Calls => "calls",
            Self::Confirmations => "confirmations",
            Self::SessionConfirmations => "session_confirmations",
            Self::Tasks => "tasks",
            Self::Blocks => "blocks",
            Self::Rates => "rates",
            Self::Values => "values",
            Self::Calendar => "calendar",
            Self::Files => "files",
            Self::Audit => "audit",
            Self::Outbox => "outbox",
            Self::Versions => "versions",
        }
    }
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What was written.
    pub value: Value,
    /// Which commit wrote it. Grows with every commit of the store and never comes back, so that a row that was
    /// deleted and written again is not taken for the old one.
    pub version: u64,
}

/// Which rows to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// How their keys begin.
    pub prefix: String,
    /// Only keys after this one: where the last page ended.
    pub after: Option<String>,
    /// At most so many.
    pub limit: usize,
}

impl Scan {
    /// The first `limit` rows with a prefix.
    pub fn prefix(prefix: impl Into<String>, limit: usize) -> Self {
        Self { prefix: prefix.into(), after: None, limit }
    }
}

/// Changes that hold together or not at all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Commit {
    /// What must be so.
    pub checks: Vec<Check>,
    /// What is to be.
    pub writes: Vec<Write>,
}

/// One row must be as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Where.
    pub table: Table,
    /// Which row.
    pub key: String,
    /// Its version; `None` when there was no such row.
    pub version: Option<u64>,
}

/// One row becomes something else.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// Where.
    pub table: Table,
    /// Which row.
    pub key: String,
    /// What it becomes; `None` deletes it.
    pub value: Option<Value>,
    /// When it may be forgotten, in milliseconds since 1970. A row is there until [`Store::sweep`] comes by; what
    /// must end on time says so in its value.
    pub expires_ms: Option<u64>,
}

impl Commit {
    /// Demands that a row is as it was seen.
    #[must_use]
    pub fn check(mut self, table: Table, key: impl Into<String>, version: Option<u64>) -> Self {
        self.checks.push(Check { table, key: key.into(), version });
        self
    }

    /// Writes a row.
    #[must_use]
    pub fn put(mut self, table: Table, key: impl Into<String>, value: Value) -> Self {
        self.writes.push(Write { table, key: key.into(), value: Some(value), expires_ms: None });
        self
    }

    /// Writes a row that may be forgotten after a time.
    #[must_use]
    pub fn put_until(
        mut self,
        table: Table,
        key: impl Into<String>,
        value: Value,
        expires_ms: Option<u64>,
    ) -> Self {
        self.writes.push(Write { table, key: key.into(), value: Some(value), expires_ms });
        self
    }

    /// Deletes a row, if it is there.
    #[must_use]
    pub fn delete(mut self, table: Table, key: impl Into<String>) -> Self {
        self.writes.push(Write { table, key: key.into(), value: None, expires_ms: None });
        self
    }

    /// Whether it would change nothing.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Adds the checks and writes of another.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.checks.extend(other.checks);
        self.writes.extend(other.writes);
        self
    }
}

/// Why a commit was not applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// A row is not as it was seen. Nothing was written.
    #[error("{}/{key} has changed", table.as_str())]
    Conflict {
        /// Where.
        table: Table,
        /// Which row.
        key: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a store did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The engine failed: the disk is full, the file is damaged, the network is gone.
    #[error("the store failed: {0}")]
    Failed(String),
    /// Too many queued commits are waiting.
    #[error("the store's queue is full")]
    QueueFull,
    /// The store was shut.
    #[error("the store is closed")]
    Closed,
}
