//! The knowledge base of several nodes, in PostgreSQL: records, vectors and the finished index, in one generation.
//!
//! One node builds, under a lease; the others notice and load what it built, as one machine loads its file. Up to a
//! configured number of passages everything is searched in the node, and the database needs no extension. Beyond, words stay
//! in the node and vectors are compared by pgvector.

mod build;
mod copy;
mod embeddings;
mod error;
mod follow;
mod generation;
mod key;
mod lease;
mod load;
mod save;
mod schema;
mod source;
mod vectors;

pub use build::{BuildRequest, Built, Meaning};
pub use error::{KnowledgeError, PgvectorError};
pub use follow::{TOPIC, announce};
pub use generation::Generation;
pub use load::Loaded;
pub use schema::{DEFAULT_SCHEMA, KnowledgeDatabase};
