//! The crate from outside: made-up models, damaged ones, installation, and the real model where it is installed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod damaged;
mod golden;
mod install;
mod models;
mod world;
