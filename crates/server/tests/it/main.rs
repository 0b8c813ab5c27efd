//! The server on a real socket.

mod blocked;
mod confirmations;
mod description;
mod draining;
mod http;
mod identity;
mod limits;
mod odd_requests;
mod origins;
mod sessions;
mod world;
