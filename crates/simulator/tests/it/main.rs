//! Conversations with the rehearsal model, as transcripts.

mod always;
mod answers;
mod manners;
mod outcomes;
mod refusals;
mod requests;
mod script;
mod talk;
