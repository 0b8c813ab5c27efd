//! Artifacts in, envelopes out.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod admin;
mod audit;
mod audit_nodes;
mod audit_segments;
mod capabilities;
mod execution;
mod faults;
mod handler_kinds;
mod images;
mod loading;
mod nodes;
mod orchestrator;
mod precheck;
mod probe_tool;
mod versions;
