//! The MCP server as its clients see it, message by message.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod approval_pages;
mod elicitation;
mod http_handshake;
mod input_required;
mod model_inputs;
mod pipe;
mod post;
mod request_count;
mod tasks;
mod tools;
mod world;
