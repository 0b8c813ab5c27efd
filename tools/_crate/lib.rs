//! The built-in tools whose handlers are written in Rust.
//!
//! Each is a folder beside this one with a `schema.json`, a `guide.md` and a `handler.rs`; the build script finds
//! them, so this file names none. A handler gets typed arguments that its schema has already accepted and a
//! [`Context`](quarterdeck_contracts::handler::Context); it opens no files, no sockets and no clock of its own.

use quarterdeck_contracts::handler::NativeHandler;

include!(concat!(env!("OUT_DIR"), "/handlers.rs"));

mod booking;
mod range;
mod refusal;
#[cfg(test)]
mod world;
