//! The orchestrator, from a transport's side.

mod answering;
mod asking;
mod budgeting;
mod cutting;
pub(crate) mod deck;
mod keeping;
mod living;
mod moody;
