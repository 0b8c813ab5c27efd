//! Conversations with the rehearsal model, as transcripts.

mod answers;
mod talk;
