//! What tests of several crates share. Never a dependency of the product.

mod block_on;
mod context;
mod fixtures;
pub mod store_conformance;
mod tree;

pub use block_on::block_on;
pub use context::{FakeContext, RecordedEffects};
pub use fixtures::{corpus, jsonl};
pub use tree::{Tree, tree};
