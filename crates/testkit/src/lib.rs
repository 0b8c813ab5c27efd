//! What tests of several crates share. Never a dependency of the product.

mod fixtures;
mod tree;

pub use fixtures::jsonl;
pub use tree::{Tree, tree};
