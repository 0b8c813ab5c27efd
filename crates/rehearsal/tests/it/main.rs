//! Conversations with the rehearsal model, as transcripts.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod always;
mod answers;
mod manners;
mod outcomes;
mod refusals;
mod requests;
mod script;
mod talk;
