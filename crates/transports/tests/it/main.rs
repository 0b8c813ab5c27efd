//! Streams that were recorded or written down, requests beside what the official clients send, and servers that
//! misbehave.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bounds;
mod client;
mod configuration;
mod conversations;
mod failures;
mod fixtures;
mod goldens;
mod images;
mod live_caller;
mod live_gemini;
mod live_gemini_messages;
mod live_gemini_recorded;
mod live_gemini_setup;
mod live_keep_alive;
mod live_openai;
mod live_openai_recorded;
mod live_provider;
mod live_simulated;
mod local_servers;
mod mutations;
mod prompt_cache;
mod recorded_requests;
mod recorded_streams;
mod refused_schema;
mod server;
mod speech_to_text;
mod text_to_speech;
mod timeouts;
mod trace_header;
