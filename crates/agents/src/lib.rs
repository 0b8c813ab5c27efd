//! The turn, and the agents on top of it.
//!
//! An agent connects a model, tools and a user: it builds the prompt, keeps the conversation, drives turns
//! and streams events to readers. What the model may do is decided by the runtime's gates; nothing here decides it, speaks
//! HTTP, or knows one provider from another.

mod briefing;
mod declared_names;
mod describe;
mod note;
mod prompt;
pub mod text;
pub mod transcripts;
pub mod turn;
pub mod voice;

pub use prompt::{Declare, Prompts, Situation};

/// The agent, as telemetry names it.
const AGENT_NAME: &str = "quarterdeck";
