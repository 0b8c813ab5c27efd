//! The orchestrator, from a transport's side.

mod answering;
mod asking;
mod chaos;
mod deck;
mod fragile;
mod isolation;
mod secrets;
