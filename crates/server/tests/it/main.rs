//! The server on a real socket.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod blocked;
mod completions;
mod confirmations;
mod connections;
mod credentials;
mod deck;
mod description;
mod draining;
mod files;
mod forwarded;
mod hosts;
mod http;
mod identity;
mod limits;
mod malleable;
mod odd_requests;
mod origins;
mod required;
mod sessions;
mod tasks;
mod tokens;
mod unread;
mod voice;
mod world;
