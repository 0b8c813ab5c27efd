//! Calls through the server as it is built and started, with a simulated provider at one end and a page at the other.
//!
//! Connections are cut and processes are killed here. What came of it is counted from outside: in the audit trail, in
//! what the tools have kept, and by the provider, which knows for every call how often it was answered.

mod budgets;
mod confirmation;
mod disconnects;
mod dropped;
mod farewell;
mod held_socket;
mod ids;
mod killed;
mod local_engines;
mod messages;
pub(crate) mod page;
mod pipeline;
mod provider;
mod registry;
mod restarted;
mod server;
mod simulated;
mod spans;
mod speech_engines;
mod tools;
mod voice_model;
