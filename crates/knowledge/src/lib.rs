//! The knowledge base: records from files, found by words and by meaning, with one score between 0 and 1.
//!
//! The crate reads folders and computes; it opens no connection and runs no async runtime, and what a record says never
//! changes how it is treated.

mod base;
mod bytes;
mod cache;
mod day;
mod embed;
pub mod eval;
mod get;
mod index;
mod list;
mod passages;
mod record;
pub mod saved;
mod search;
mod snapshot;
mod snippet;
#[cfg(feature = "sqlite")]
pub mod store;
mod text;
mod top_k;
mod vectors;
mod worker;

pub use base::{KnowledgeBase, Stats};
pub use record::{
    Fault, MAX_FILE_BYTES, PathDefaults, Problem, ReadRecords, fingerprint, parse_markdown, read_folder,
    read_jsonl,
};
pub use search::ScoreThresholds;
pub use snapshot::{BuildError, KnownVectors, Progress};
pub use vectors::VectorError;
