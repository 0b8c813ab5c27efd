//! The host against servers that speak the protocol: one of the SDK in a process of its own, and scripted ones over HTTP.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod calls;
mod http;
mod http_server;
mod losses;
mod pins;
mod requests;
mod stdio_server;
mod world;
