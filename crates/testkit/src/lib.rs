//! What tests of several crates share. Never a dependency of the product.

mod context;
mod fixtures;
mod tree;

pub use context::{FakeContext, Seen};
pub use fixtures::jsonl;
pub use tree::{Tree, tree};
