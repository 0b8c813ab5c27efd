//! Calls on real sockets.

mod calls;
mod echo_model;
mod floods;
mod handshake;
pub(crate) mod page;
mod tickets;

pub(crate) use echo_model::EchoModel;
