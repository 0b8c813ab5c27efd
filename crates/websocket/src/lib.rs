//! WebSockets as an audio relay needs them (RFC 6455, without extensions).
//!
//! Bytes are read into one buffer and frames are looked at where they lie; frames to send are written into another, and
//! as many as wait there go out in one write. Nothing is reserved because a peer announces it, every limit has its close
//! code, and audio that nobody takes can be thrown away again while it waits. No library that was looked at does these
//! together, and a relay is made of little else.

mod frame;
mod handshake;
mod inbox;
mod outbox;
mod socket;

pub use frame::{CloseCode, Opcode};
pub use handshake::{Request, UpgradeError, Waiting, accept_key, knock, upgrade};
pub use inbox::{Limits, Message, Violation};
pub use outbox::Class;
pub use socket::{Role, SocketError, ViolationText, WebSocket};
