//! Engines behind [`quarterdeck_contracts::Store`].
//!
//! [`MemoryStore`] is for tests and for runs that leave nothing behind; [`SqliteStore`] is one file on one machine;
//! [`postgres::PostgresStore`] is shared by several nodes. [`SealedStore`] encrypts conversations in front of any of them.

mod changes;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod export;
mod limits;
mod memory;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod queued_rows;
mod sealed;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use export::ExportedRow;
pub use memory::MemoryStore;
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
pub use sealed::{KEY_BYTES, NotAKey, SealedStore, SealingKey, SealingKeys};
#[cfg(feature = "sqlite")]
pub use sqlite::{
    OpenError, SQLITE_FORMAT, SqliteOptions, SqliteSnapshot, SqliteStore, vacuum as vacuum_sqlite,
};
