//! The server on a real socket.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod address_blocks;
mod approvals;
mod blocked;
mod completions;
mod confirmations;
mod connections;
mod conversations;
mod credentials;
mod deck;
mod description;
mod draining;
mod embed;
mod files;
mod forwarded;
mod hosts;
mod http;
mod identity;
mod limits;
mod malleable;
mod mcp;
mod me;
mod model_trouble;
mod nodes;
mod odd_requests;
mod origins;
mod page_settings;
mod required;
mod session_tokens;
mod sessions;
mod tasks;
mod tokens;
mod unread;
mod voice;
mod watch;
mod world;
