//! A chat model that is built in, deterministic and offline, so that a newcomer, a demonstration and every test see the
//! whole product without a key.
//!
//! [`Rehearsal`] is no language model and does not pretend to be one: it follows the retrieval-first loop for real,
//! recognises plain requests by the tools' own guides, and quotes what it finds. A [`Script`] makes it say and call exactly
//! what a test wants. This crate opens no file and no connection. What day it is stands in the request.

mod context;
mod decide;
mod fill;
mod guide;
mod missing;
mod model;
mod moderation;
mod now;
mod offer;
mod outcome;
mod parameter;
mod parsed_message;
mod quoting;
mod recognise;
mod refusal;
mod reply;
mod reply_stream;
mod script;
mod search;
mod sentences;
mod small_talk;
mod template;
mod toolbox;
mod vocabulary;
mod when;
mod words;

pub use model::Rehearsal;
pub use script::{Script, ScriptError};
