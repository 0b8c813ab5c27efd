//! Conversations with the rehearsal model, as transcripts.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod answers;
mod conversation;
mod outcomes;
mod properties;
mod refusals;
mod requests;
mod script;
mod small_talk;
