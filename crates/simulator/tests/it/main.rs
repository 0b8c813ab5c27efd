//! Conversations with the rehearsal model, as transcripts.

mod answers;
mod manners;
mod outcomes;
mod refusals;
mod requests;
mod talk;
