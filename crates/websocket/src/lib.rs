//! WebSockets as an audio relay needs them (RFC 6455, without extensions).
//!
//! Bytes are read into one buffer and frames are read where they lie; frames to send are written into another, and as
//! many as are queued go out in one write. Nothing is reserved because a peer announces it, every limit has its close
//! code, and queued audio can be dropped when a peer does not read. No library that was looked at does these together,
//! and a relay is made of little else.

mod frame;
mod handshake;
mod receive_buffer;
mod send_queue;
mod socket;

pub use frame::{CloseCode, Opcode};
pub use handshake::{PendingUpgrade, Request, UpgradeError, accept_key, receive_upgrade, upgrade};
pub use receive_buffer::{Limits, Message, Violation};
pub use send_queue::Class;
pub use socket::{Role, SocketError, ViolationText, WebSocket};
