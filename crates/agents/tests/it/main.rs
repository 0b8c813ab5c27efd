//! The turn without a runtime, and the agents with a scripted model and the real orchestrator.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod both;
mod confirmations;
mod conversation;
mod declared_names;
mod fallback;
mod faults;
mod history;
mod memory;
mod nodes;
mod prompt;
mod tasks;
mod transcripts;
mod turn;
mod voice;
mod world;
