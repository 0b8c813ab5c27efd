//! The tools of the registry: lists, calls, sessions, and news of changes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod calls;
mod changes;
mod client;
mod http;
mod listing;
mod sessions;
mod world;
