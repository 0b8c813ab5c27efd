//! Calls on real sockets: how they begin, what they may send, and how they end.

mod calls;
mod floods;
mod handshake;
pub(crate) mod page;
mod parrot;
mod tickets;

pub(crate) use parrot::Parrot;
