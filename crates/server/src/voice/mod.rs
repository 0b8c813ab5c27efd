//! Calls over WebSockets: the browser's end of a call, and what a page may send.
//!
//! A call is the voice agent's. Here is the protocol that a page speaks, and everything that keeps a page from doing
//! harm: what it sends is limited in size, number and pace, and what it does not read does not pile up.

mod call;
mod line;
mod pace;
mod said;
mod ticket;
mod told;

pub(crate) use call::Caught;
pub use call::answer_call;
pub(crate) use ticket::{LIFE, TicketHolder, Tickets};
