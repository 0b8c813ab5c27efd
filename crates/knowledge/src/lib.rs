//! What do our records say about this? Records come from files that people wrote and are found by words and by
//! meaning, with one score between 0 and 1.
//!
//! The crate reads folders when it is asked to and computes; it opens no connection, runs no async runtime, and what a
//! record says never changes how it is treated.

mod base;
mod best;
#[cfg(feature = "sqlite")]
mod bytes;
mod cache;
mod day;
mod embed;
pub mod eval;
mod get;
mod index;
mod passages;
mod record;
mod search;
mod snapshot;
mod snippet;
#[cfg(feature = "sqlite")]
pub mod store;
mod text;
mod vectors;
mod worker;

pub use base::{KnowledgeBase, Stats};
pub use record::{
    Fault, LARGEST_FILE, PathDefaults, Problem, Read, fingerprint, parse_markdown, read_folder, read_jsonl,
};
pub use search::ScoreThresholds;
pub use snapshot::{BuildError, KnownVectors, Progress};
pub use vectors::VectorError;
