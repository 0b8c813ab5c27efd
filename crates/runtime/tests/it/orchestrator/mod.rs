//! The orchestrator, from a transport's side.

mod answering;
mod asking;
mod deck;
mod keeping;
