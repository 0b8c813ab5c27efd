//! Artifacts in, envelopes out.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod audit;
mod capabilities;
mod execution;
mod handler_kinds;
mod loading;
mod operating;
mod orchestrator;
mod world;
