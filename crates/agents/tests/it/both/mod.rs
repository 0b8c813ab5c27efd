//! The same scenarios in writing and in speech.
//!
//! One table of cases is played by two stages: the text agent, which asks a scripted server over HTTP, and the voice
//! agent, which speaks to the simulator in the provider's own protocol. Where the two differ, a case has two columns.

mod arguments;
mod budgets;
mod case;
mod confirmations;
mod errors;
mod intents;
mod log;
mod modes;
mod random_events;
mod reloading;
mod repeats;
mod scripted;
mod text_harness;
mod tools;
mod voice_harness;
