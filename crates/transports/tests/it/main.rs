//! Streams that were recorded or written down, requests beside what the official clients send, and servers that
//! misbehave.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod conversations;
mod faulty_servers;
mod goldens;
mod recorded_requests;
mod recorded_streams;
mod server;
mod world;
