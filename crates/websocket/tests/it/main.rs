//! WebSockets from outside: what is read, what is refused, what is kept.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod handshake;
mod reading;
mod sending;
mod violations;
mod wire;
