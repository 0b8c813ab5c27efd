//! Handlers in JavaScript, run as the registry runs them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod answers;
mod cancellation;
mod faults;
mod fetching;
mod hostile;
mod pool;
mod prelude;
mod properties;
mod scarcity;
mod secrets;
mod session_tools;
mod slow_natives;
mod world;
