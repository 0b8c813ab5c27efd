//! Handlers in WebAssembly, run as the registry runs them. The modules are in the language's text form.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod answers;
mod hostile;
mod isolation;
mod properties;
mod requests;
mod scarcity;
mod world;
