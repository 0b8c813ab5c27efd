//! Bytes that have arrived, and the messages in them.

use std::ops::Range;
use std::str::from_utf8;

use crate::frame::{CloseCode, FrameHeader, HeaderError, MAX_HEADER_BYTES, Opcode, apply_mask};
use crate::socket::Role;

/// Size of the buffer until a larger frame arrives.
const INITIAL_BYTES: usize = 4 << 10;
/// A larger buffer is freed once it is empty.
const MAX_IDLE_BYTES: usize = 16 << 10;

/// What a peer may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// In one frame or several.
    pub max_message_bytes: usize,
}

/// A message, borrowed from the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// UTF-8 text.
    Text(&'a str),
    /// Bytes.
    Binary(&'a [u8]),
    /// A ping, which has been answered.
    Ping(&'a [u8]),
    /// A pong.
    Pong,
    /// A close frame, perhaps without a code, and its reason.
    Close(Option<CloseCode>, &'a str),
}

/// A frame that the protocol or the limits do not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} (close code {})", code.0)]
pub struct Violation {
    /// The code to close with.
    pub code: CloseCode,
    /// What was wrong.
    pub what: &'static str,
}

#[derive(Debug)]
pub(crate) struct ReceiveBuffer {
    role: Role,
    limits: Limits,
    /// Bytes from `start` to `end` have arrived and were not read.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// The fragments of an incomplete message, and its kind.
    fragments: Vec<u8>,
    fragments_of: Option<Opcode>,
    is_over: bool,
    /// Whether it is over because of the peer's close frame.
    is_closed_by_peer: bool,
    frames: u64,
}

/// Where the bytes of a message are.
enum MessageBytes {
    Frame(Opcode, Range<usize>),
    Fragments(Opcode),
}

impl ReceiveBuffer {
    pub(crate) fn new(role: Role, limits: Limits, arrived: &[u8]) -> Self {
        let mut bytes = vec![0; INITIAL_BYTES.max(arrived.len())];
        bytes[..arrived.len()].copy_from_slice(arrived);
        let end = arrived.len();
        Self {
            role,
            limits,
            bytes,
            start: 0,
            end,
            fragments: Vec::new(),
            fragments_of: None,
            is_over: false,
            is_closed_by_peer: false,
            frames: 0,
        }
    }

    /// Space to read into. It grows with what has arrived, never with what a header announces.
    pub(crate) fn spare(&mut self) -> &mut [u8] {
        // What comes after the end is read and discarded.
        if self.start == self.end || self.is_over {
            (self.start, self.end) = (0, 0);
            if self.bytes.len() > MAX_IDLE_BYTES {
                self.bytes = vec![0; INITIAL_BYTES];
            }
        }
        if self.end == self.bytes.len() {
            if self.start > 0 {
                self.bytes.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            } else {
                let limit = self.limits.max_message_bytes.saturating_add(MAX_HEADER_BYTES);
                let grown = (self.bytes.len() * 2).min(limit.max(INITIAL_BYTES));
                // A frame that would not fit is refused by its header, so there is always space for more.
                self.bytes.resize(grown.max(self.end + MAX_HEADER_BYTES), 0);
            }
        }
        &mut self.bytes[self.end..]
    }

    /// Says that `count` bytes were read into the spare space.
    pub(crate) fn advance(&mut self, count: usize) {
        self.end += count;
    }

    /// Frames read so far.
    pub(crate) fn frames(&self) -> u64 {
        self.frames
    }

    /// Ignores everything that arrives from now on.
    pub(crate) fn close(&mut self) {
        self.is_over = true;
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.is_over
    }

    pub(crate) fn is_closed_by_peer(&self) -> bool {
        self.is_closed_by_peer
    }

    /// The next whole message; `None` until more arrives.
    pub(crate) fn next(&mut self) -> Option<Result<Message<'_>, Violation>> {
        match self.find()? {
            Ok(found) => Some(self.read(found)),
            Err(violation) => {
                self.is_over = true;
                Some(Err(violation))
            }
        }
    }

    fn find(&mut self) -> Option<Result<MessageBytes, Violation>> {
        loop {
            if self.is_over {
                return None;
            }
            let head = match FrameHeader::read(&self.bytes[self.start..self.end])? {
                Ok(head) => head,
                Err(bad) => return Some(Err(bad.violation())),
            };
            if let Err(violation) = self.check(&head) {
                return Some(Err(violation));
            }
            let begin = self.start + head.length;
            // `check` has seen that it is below the limit.
            let end = begin + head.payload as usize;
            if end > self.end {
                return None;
            }
            self.start = end;
            self.frames += 1;
            if let Some(mask) = head.mask {
                apply_mask(&mut self.bytes[begin..end], mask);
            }
            if head.opcode.is_control() || (head.is_final && head.opcode != Opcode::Continuation) {
                return Some(Ok(MessageBytes::Frame(head.opcode, begin..end)));
            }
            self.fragments.extend_from_slice(&self.bytes[begin..end]);
            let opcode = self.fragments_of.unwrap_or(head.opcode);
            self.fragments_of = (!head.is_final).then_some(opcode);
            if head.is_final {
                return Some(Ok(MessageBytes::Fragments(opcode)));
            }
        }
    }

    /// Whether a frame may come now, from this peer, at this size.
    fn check(&mut self, head: &FrameHeader) -> Result<(), Violation> {
        let protocol = |what| Err(Violation { code: CloseCode::PROTOCOL, what });
        match (self.role, head.mask) {
            (Role::Server, None) => return protocol("a client's frame without a mask"),
            (Role::Client, Some(_)) => return protocol("a server's frame with a mask"),
            _ => {}
        }
        if head.opcode.is_control() {
            return Ok(());
        }
        match (head.opcode, self.fragments_of) {
            (Opcode::Continuation, None) => return protocol("a continuation of nothing"),
            (Opcode::Continuation, Some(_)) => {}
            (_, Some(_)) => return protocol("a message within a message"),
            // The last message has been read.
            (_, None) => self.fragments = Vec::new(),
        }
        let before = if head.opcode == Opcode::Continuation { self.fragments.len() } else { 0 };
        if head.payload > (self.limits.max_message_bytes - before.min(self.limits.max_message_bytes)) as u64 {
            return Err(Violation { code: CloseCode::TOO_BIG, what: "a message that is too large" });
        }
        Ok(())
    }

    fn read(&mut self, found: MessageBytes) -> Result<Message<'_>, Violation> {
        let (opcode, bytes) = match found {
            MessageBytes::Frame(opcode, range) => (opcode, &self.bytes[range]),
            MessageBytes::Fragments(opcode) => (opcode, self.fragments.as_slice()),
        };
        let read = match opcode {
            Opcode::Text => text(bytes).map(Message::Text),
            Opcode::Binary | Opcode::Continuation => Ok(Message::Binary(bytes)),
            Opcode::Ping => Ok(Message::Ping(bytes)),
            Opcode::Pong => Ok(Message::Pong),
            Opcode::Close => close(bytes),
        };
        self.is_over |= read.is_err() || opcode == Opcode::Close;
        self.is_closed_by_peer |= read.is_ok() && opcode == Opcode::Close;
        read
    }
}

impl HeaderError {
    fn violation(self) -> Violation {
        let what = match self {
            Self::ReservedBits => "reserved bits",
            Self::UnknownOpcode => "an unknown kind of frame",
            Self::LongControl => "a control frame that is long or in parts",
        };
        Violation { code: CloseCode::PROTOCOL, what }
    }
}

fn text(bytes: &[u8]) -> Result<&str, Violation> {
    from_utf8(bytes).map_err(|_| Violation { code: CloseCode::INVALID, what: "a text that is not UTF-8" })
}

fn close(bytes: &[u8]) -> Result<Message<'_>, Violation> {
    let Some((code, reason)) = bytes.split_first_chunk() else {
        return match bytes {
            [] => Ok(Message::Close(None, "")),
            _ => Err(Violation { code: CloseCode::PROTOCOL, what: "half a close code" }),
        };
    };
    let code = CloseCode(u16::from_be_bytes(*code));
    if !code.is_sendable() {
        return Err(Violation { code: CloseCode::PROTOCOL, what: "a close code that may not be sent" });
    }
    Ok(Message::Close(Some(code), text(reason)?))
}
