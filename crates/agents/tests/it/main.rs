//! The turn without a runtime, and the text agent with a scripted model and the real orchestrator.

mod faults;
mod history;
mod person;
mod prompt;
mod talk;
mod turn;
mod world;
