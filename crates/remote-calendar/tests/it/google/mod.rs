//! A calendar at Google, with a server of ours that speaks the documented wire format and fails in the documented ways.

mod events;
mod faults;
mod server;
mod tokens;
pub(crate) mod world;
