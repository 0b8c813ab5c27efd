//! The shapes on the wire: what is written is what is read.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod artifact;
mod case;
mod definition;
mod response;
mod visible;
