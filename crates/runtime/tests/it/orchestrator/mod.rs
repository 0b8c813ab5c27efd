//! The orchestrator, from a transport's side.

mod answering;
mod asking;
mod budgeting;
mod chaos;
mod cutting;
pub(crate) mod deck;
mod fragile;
mod isolation;
mod judging;
mod keeping;
mod living;
mod moody;
mod secrets;
