//! A chat model that is built in, deterministic and offline, so that a newcomer, a demonstration and every test see the
//! whole product without a key.
//!
//! [`Rehearsal`] is no language model and does not pretend to be one: it follows the retrieval-first loop for real,
//! recognises plain requests by the tools' own guides, and quotes what it finds. A [`Script`] makes it say and call exactly
//! what a test wants. This crate opens no file and no connection. What day it is stands in the request.

mod choose;
mod context;
mod decide;
mod evidence;
mod fill;
mod language;
mod lookup;
mod missing;
mod model;
mod moderation;
mod now;
mod outcome;
mod parameter;
mod parsed_message;
mod question;
mod refusal;
mod reply;
mod reply_stream;
mod request;
mod script;
mod sentences;
mod small_talk;
mod toolbox;
mod when;
mod words;
mod world_clock;

pub use model::Rehearsal;
pub use script::{Script, ScriptError};
