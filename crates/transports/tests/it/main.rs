//! Streams that were recorded or written down, requests beside what the official clients send, and servers that
//! misbehave.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod asking;
mod bounds;
mod client;
mod conversations;
mod failing;
mod goldens;
mod live_gemini;
mod live_gemini_messages;
mod live_gemini_recorded;
mod live_gemini_setup;
mod live_line;
mod live_openai;
mod live_openai_recorded;
mod live_person;
mod live_pipe;
mod live_simulated;
mod mutations;
mod recorded_requests;
mod recorded_streams;
mod server;
mod stalling;
mod world;
