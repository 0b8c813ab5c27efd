//! MCP servers that break the rules, behind the whole path: a compiled registry, a session, its gates, and the host.
//!
//! Each test says what an attack must not achieve, and asks the server's own notes what it got to see.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod answers;
mod drift;
mod http;
mod kills;
mod lists;
mod memory;
mod notes;
mod processes;
mod requests;
mod results;
mod sharing;
mod until;
mod world;
mod writes;
