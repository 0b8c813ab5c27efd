//! The orchestrator, from a transport's side.

mod answering;
mod asking;
mod cutting;
mod deck;
mod keeping;
mod living;
mod moody;
