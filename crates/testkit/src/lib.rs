//! What tests of several crates share. Never a dependency of the product.

mod block_on;
mod context;
mod fixtures;
#[cfg(unix)]
mod postgres;
pub mod real_speech;
mod scripted_turns;
pub mod sound;
pub mod store_conformance;
#[cfg(feature = "stores")]
mod stores;
mod tree;

pub use block_on::block_on;
pub use context::{FakeContext, RecordedEffects};
pub use fixtures::{corpus, jsonl};
#[cfg(unix)]
pub use postgres::{Pooler, PostgresServer, PostgresVersion};
pub use scripted_turns::{ScriptedReply, ScriptedTurns, Shown};
#[cfg(feature = "stores")]
pub use stores::{new_store, open_store};
pub use tree::{Tree, tree};
