//! What stands in for a provider when there is none.
//!
//! For now one thing: [`Rehearsal`], a chat model that is built in, deterministic and offline, so that a newcomer, a
//! demonstration and every test see the whole product without a key. It is no language model and does not pretend to be
//! one: it follows the retrieval-first loop for real, recognises plain requests by the tools' own guides, and quotes
//! what it finds. A [`Script`] makes it say and call exactly what a test wants.
//!
//! This crate opens no file and no connection and reads no clock: what day it is stands in the request.

mod play;
mod rehearsal;
mod script;

pub use rehearsal::Rehearsal;
pub use script::{Script, ScriptError};
