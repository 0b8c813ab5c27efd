//! Engines behind [`quarterdeck_contracts::Store`].
//!
//! [`MemoryStore`] is for tests and for runs that leave nothing behind; [`SqliteStore`] is one file on one machine.

mod limits;
mod memory;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use memory::MemoryStore;
#[cfg(feature = "sqlite")]
pub use sqlite::{OpenError, SqliteOptions, SqliteStore};
