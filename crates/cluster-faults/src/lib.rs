//! Faults on purpose: nodes as real processes on real PostgreSQL servers, a proxy that cuts their lines, a load of chats and
//! calls that write and approve, and a checker that compares what clients were told with the ledger and with the outside
//! world.
//!
//! The tests inject each fault a few times. `scripts/soak` does it for as long as one likes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod call;
mod chat;
pub mod checker;
mod client;
mod clock;
pub mod database;
pub mod faults;
mod http;
pub mod journal;
pub mod ledger;
mod live;
mod load;
mod model;
mod node;
mod outside;
pub mod proxy;
mod site;
mod world;

pub use client::Surroundings;
pub use load::{Load, LoadSize};
pub use node::Node;
pub use outside::Outside;
pub use world::{Engine, Outcome, World, WorldOptions};
