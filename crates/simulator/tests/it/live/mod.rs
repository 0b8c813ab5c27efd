//! Conversations with the Live simulator, on a stream in memory with paused time.

mod chat_model;
mod client;
mod conversations;
mod examples;
mod faults;
mod frames;
mod interruption;
mod non_blocking;
mod properties;
mod recorded;
mod resumption;
mod scenario_errors;
mod setup;
