//! Connections to PostgreSQL: where it is, how it is encrypted, how many there may be, and how long anything may take.
//!
//! A crate because the store and the knowledge base both need it. Nothing here depends on the state of a connection, so a
//! pooler in transaction mode may stand between; only [`Database::dedicated`] must reach the server itself.

mod database;
mod dedicated;
mod error;
mod settings;
mod tls;

pub use database::{Database, Work};
pub use deadpool_postgres::Object;
pub use dedicated::Dedicated;
pub use error::{ConnectError, DatabaseError, ErrorClass, Refusal};
pub use settings::{PostgresSettings, PostgresUrlError};
