//! What stands in for a provider when there is none.
//!
//! Two things. [`Rehearsal`] is a chat model that is built in, deterministic and offline, so that a newcomer, a
//! demonstration and every test see the whole product without a key. It is no language model and does not pretend to be
//! one: it follows the retrieval-first loop for real, recognises plain requests by the tools' own guides, and quotes
//! what it finds. A [`Script`] makes it say and call exactly what a test wants.
//!
//! [`live`] is the other end of a spoken conversation: it speaks the provider's side of the Gemini Live protocol on any
//! stream that it is given.
//!
//! This crate opens no file and no connection and starts no program. What day it is stands in the request.

mod fields;
pub mod live;
mod play;
pub mod realtime;
mod rehearsal;
mod script;
mod speech_detector;

pub use rehearsal::Rehearsal;
pub use script::{Script, ScriptError};
