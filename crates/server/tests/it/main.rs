//! The server on a real socket.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod blocked;
mod confirmations;
mod deck;
mod description;
mod draining;
mod http;
mod identity;
mod limits;
mod odd_requests;
mod origins;
mod sessions;
mod voice;
mod world;
