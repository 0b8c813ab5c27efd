//! Calls over WebSockets: the client protocol and its limits.
//!
//! The voice agent runs a call. Here its messages are decoded and encoded, input is limited in size, number and rate,
//! and output that the client does not read is bounded.

mod call;
mod client_frame;
mod counted_stream;
mod server_message;
mod ticket;
mod token_bucket;
mod websocket_link;

pub(crate) use call::IncomingCall;
pub use call::answer_call;
#[cfg(test)]
pub(crate) use server_message::VoiceMessage;
pub(crate) use ticket::{TICKET_TTL, TicketHolder, Tickets};
