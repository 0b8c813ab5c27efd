//! Where everything is kept that outlives a process.
//!
//! A store is a few named tables of JSON rows and one way to change them: a [`Commit`], whose checks and writes hold
//! together or not at all. What the rows mean is the business of those who write them; so an engine is small, and
//! whatever must be decided between sessions, processes or nodes is decided by one atomic step.

mod health;
mod take;

use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use serde_json::Value;

use crate::handler::BoxFuture;

pub use health::{PoolUse, StoreHealth};
pub use take::{Take, Taken};

/// Maximum length of a key, in bytes: what the index of every engine holds.
pub const MAX_KEY_BYTES: usize = 1_024;

/// Keeps rows.
///
/// An implementation may rely on nothing but what it is given. It must not lose a commit that it has acknowledged,
/// must not show half of one, and must answer reads with everything that was committed or queued before them.
pub trait Store: Send + Sync {
    /// One row.
    fn get(&self, table: Table, key: &str) -> BoxFuture<Result<Option<Row>, StoreError>>;

    /// The rows of a table whose keys begin with a prefix, in the order of their keys (by bytes).
    fn scan(&self, table: Table, scan: Scan) -> BoxFuture<Result<Vec<(String, Row)>, StoreError>>;

    /// Applies a commit if all its checks hold and its rate limits have room. It is durable when the future ends, with the
    /// version that its rows have now; 0 when it wrote nothing.
    ///
    /// A value may nest 127 levels deep: what is deeper could be written but not parsed again, and is refused.
    ///
    /// The work goes on when the future is dropped: a commit is never half applied.
    fn commit(&self, commit: Commit) -> BoxFuture<Result<u64, CommitError>>;

    /// Takes a commit to be applied soon, without waiting for it and before every later commit of this process that looks at
    /// its rows or changes them. A crash may lose it, and one whose checks fail is dropped. Refuses when too many are
    /// waiting, so that memory stays bounded. Other nodes may not see it before [`Store::flush`] has ended.
    fn queue(&self, commit: Commit) -> Result<(), StoreError>;

    /// Waits until everything that was queued before is applied, and seen by every node.
    fn flush(&self) -> BoxFuture<Result<(), StoreError>>;

    /// Forgets the rows whose time has come, and says how many.
    fn sweep(&self, now_ms: u64) -> BoxFuture<Result<u64, StoreError>>;

    /// Writes a copy of everything, as of one moment, to a new file: a store of one machine, whatever the engine.
    fn backup(&self, to: &Path) -> BoxFuture<Result<(), StoreError>> {
        let error = format!("this store writes no backup, so there is none at {}", to.display());
        Box::pin(std::future::ready(Err(StoreError::Failed(error))))
    }

    /// Tells every process that watches this store, this one included, that something has changed. It is a hint: it may be
    /// lost, and the truth is in the rows, which are committed before.
    fn notify(&self, change: Change) {
        drop(change);
    }

    /// What others tell with [`Store::notify`], from now on.
    fn watch(&self) -> Changes {
        Box::pin(Never)
    }

    /// How an engine that is reached over a network is doing; `None` for one that is not.
    fn health(&self) -> Option<StoreHealth> {
        None
    }

    /// Whether other nodes may use it at the same time.
    fn is_shared(&self) -> bool {
        false
    }

    /// Writes what is queued and closes the engine. Later requests fail with [`StoreError::Closed`]. An error means that
    /// queued commits were lost. An engine without anything to close has nothing to do.
    fn close(&self) -> BoxFuture<Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// The changes of a store that tells of none.
struct Never;

impl Stream for Never {
    type Item = ChangeEvent;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<ChangeEvent>> {
        Poll::Pending
    }
}

/// What [`Store::watch`] yields. It ends when the store is closed.
pub type Changes = Pin<Box<dyn Stream<Item = ChangeEvent> + Send>>;

/// Something has changed that other nodes want to know at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What kind of thing, `block` or `registry`.
    pub topic: String,
    /// Which one: the key of a row, or empty. Both together have at most 4,000 bytes.
    pub key: String,
}

/// What a watcher learns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeEvent {
    /// This has changed.
    Changed(Change),
    /// Some may have been missed: a watcher that follows rows reads them again.
    Resync,
}

/// The tables. Each has one owner in the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// What was said, by session and turn; which session a client's chat is in, the list of its conversations, what it
    /// thinks of answers, and what operators keep of what was said.
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
    /// The nodes that share the store, each with its address; which of them runs a chore; and the secrets that they share.
    Nodes,
    /// Which node has a session, by session.
    Leases,
    /// Versions of the registry, each in pieces, by digest.
    Bundles,
    /// Tickets for calls that were used.
    Tickets,
}

impl Table {
    /// Every table.
    pub const ALL: [Self; 18] = [
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
        Self::Nodes,
        Self::Leases,
        Self::Bundles,
        Self::Tickets,
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
            Self::Nodes => "nodes",
            Self::Leases => "leases",
            Self::Bundles => "bundles",
            Self::Tickets => "tickets",
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
    /// Which rate limits it counts in.
    pub takes: Vec<Take>,
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

    /// Counts in a rate limit, and demands that it has room.
    #[must_use]
    pub fn take(mut self, take: Take) -> Self {
        self.takes.push(take);
        self
    }

    /// Whether it would change nothing.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.takes.is_empty()
    }

    /// Adds the checks and writes of another.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.checks.extend(other.checks);
        self.takes.extend(other.takes);
        self.writes.extend(other.writes);
        self
    }
}

/// Why a commit was not applied, or may not have been.
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
    /// A rate limit has no room. Nothing was written.
    #[error("the rate limit {key} has no room for {retry_after_ms} ms")]
    Exhausted {
        /// Which.
        key: String,
        /// How long until it has.
        retry_after_ms: u64,
    },
    /// Its answer was lost and could not be asked for again: it was applied, is being applied, or never will be.
    #[error("it is not known whether the commit was applied: {0}")]
    Unknown(String),
    /// The store failed. Nothing was written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl CommitError {
    /// For callers to whom every reason is a failure of the store.
    pub fn into_store_error(self) -> StoreError {
        match self {
            Self::Store(error) => error,
            other => StoreError::Failed(other.to_string()),
        }
    }
}

/// Why a store did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The engine failed: the disk is full, the file is damaged, the network is gone.
    #[error("the store failed: {0}")]
    Failed(String),
    /// It cannot be reached at present; it may be again.
    #[error("the store cannot be reached: {0}")]
    Unavailable(String),
    /// Too many queued commits are waiting.
    #[error("the store's queue is full")]
    QueueFull,
    /// The store was shut.
    #[error("the store is closed")]
    Closed,
}
