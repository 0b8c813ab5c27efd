//! The voice agent between a model and a client that do what a test wants.

mod barge_in;
mod edge_cases;
mod ending;
pub(crate) mod harness;
mod heard_words;
mod interruptions;
mod reconnects;
mod scheduling;
pub(crate) mod simulated;
mod spoken_confirmation;
mod tool_calls;
mod transcripts;
mod turns;
