//! The orchestrator, from a transport's side.

mod answering;
mod asking;
mod budgeting;
mod chaos;
mod cutting;
pub(crate) mod deck;
mod expiring;
mod fragile;
mod isolation;
mod judging;
mod keeping;
mod living;
mod moderating;
mod moody;
mod resuming;
mod secrets;
