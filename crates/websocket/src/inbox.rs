//! What has arrived, and the messages in it.

use std::ops::Range;
use std::str::from_utf8;

use crate::frame::{BadHead, CloseCode, Head, LONGEST_HEAD, Opcode, apply_mask};
use crate::socket::Role;

/// How large the buffer is while nothing large is on its way.
const SMALL: usize = 4 << 10;
/// From this size on it is given back when it is empty.
const LARGE: usize = 16 << 10;
/// What a peer may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest message, in one frame or several.
    pub message: usize,
}

/// A message, where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// A text.
    Text(&'a str),
    /// Bytes.
    Binary(&'a [u8]),
    /// The peer asks whether we are there. It has been answered.
    Ping(&'a [u8]),
    /// The peer is there.
    Pong,
    /// The peer closes, and says why or does not.
    Close(Option<CloseCode>, &'a str),
}

/// Something that the protocol does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} (close code {})", code.0)]
pub struct Violation {
    /// The code to close with.
    pub code: CloseCode,
    /// What it is.
    pub what: &'static str,
}

#[derive(Debug)]
pub(crate) struct Inbox {
    role: Role,
    limits: Limits,
    /// Bytes from `start` to `end` have arrived and were not looked at.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// The parts of a message that have arrived, and what it is.
    parts: Vec<u8>,
    parts_of: Option<Opcode>,
    is_over: bool,
    /// Whether it is over because the peer said so.
    was_closed: bool,
    frames: u64,
}

/// Where a message lies.
enum Found {
    Frame(Opcode, Range<usize>),
    Parts(Opcode),
}

impl Inbox {
    pub(crate) fn new(role: Role, limits: Limits, arrived: &[u8]) -> Self {
        let mut bytes = vec![0; SMALL.max(arrived.len())];
        bytes[..arrived.len()].copy_from_slice(arrived);
        let end = arrived.len();
        Self {
            role,
            limits,
            bytes,
            start: 0,
            end,
            parts: Vec::new(),
            parts_of: None,
            is_over: false,
            was_closed: false,
            frames: 0,
        }
    }

    /// Room for what arrives next. It grows with what has arrived, never with what is announced.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        // What comes after the end is read to be thrown away.
        if self.start == self.end || self.is_over {
            (self.start, self.end) = (0, 0);
            if self.bytes.len() > LARGE {
                self.bytes = vec![0; SMALL];
            }
        }
        if self.end == self.bytes.len() {
            if self.start > 0 {
                self.bytes.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            } else {
                let most = self.limits.message.saturating_add(LONGEST_HEAD);
                let grown = (self.bytes.len() * 2).min(most.max(SMALL));
                // A frame that would not fit is refused by its head, so there is always room for some more.
                self.bytes.resize(grown.max(self.end + LONGEST_HEAD), 0);
            }
        }
        &mut self.bytes[self.end..]
    }

    /// That much has arrived in the room.
    pub(crate) fn arrived(&mut self, count: usize) {
        self.end += count;
    }

    /// How many frames have been looked at.
    pub(crate) fn frames(&self) -> u64 {
        self.frames
    }

    /// Nothing that comes from now on counts.
    pub(crate) fn close(&mut self) {
        self.is_over = true;
    }

    /// Whether anything that comes is still looked at.
    pub(crate) fn is_open(&self) -> bool {
        !self.is_over
    }

    /// Whether the peer has sent a close frame.
    pub(crate) fn was_closed(&self) -> bool {
        self.was_closed
    }

    /// The next message; `None` until more arrives.
    pub(crate) fn next(&mut self) -> Option<Result<Message<'_>, Violation>> {
        match self.find()? {
            Ok(found) => Some(self.read(found)),
            Err(violation) => {
                self.is_over = true;
                Some(Err(violation))
            }
        }
    }

    fn find(&mut self) -> Option<Result<Found, Violation>> {
        loop {
            if self.is_over {
                return None;
            }
            let head = match Head::read(&self.bytes[self.start..self.end])? {
                Ok(head) => head,
                Err(bad) => return Some(Err(bad.violation())),
            };
            if let Err(violation) = self.judge(&head) {
                return Some(Err(violation));
            }
            let begin = self.start + head.length;
            // It was judged to be below the limit.
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
                return Some(Ok(Found::Frame(head.opcode, begin..end)));
            }
            self.parts.extend_from_slice(&self.bytes[begin..end]);
            let opcode = self.parts_of.unwrap_or(head.opcode);
            self.parts_of = (!head.is_final).then_some(opcode);
            if head.is_final {
                return Some(Ok(Found::Parts(opcode)));
            }
        }
    }

    /// Whether a frame may come now, from this peer, at this size.
    fn judge(&mut self, head: &Head) -> Result<(), Violation> {
        let protocol = |what| Err(Violation { code: CloseCode::PROTOCOL, what });
        match (self.role, head.mask) {
            (Role::Server, None) => return protocol("a client's frame without a mask"),
            (Role::Client, Some(_)) => return protocol("a server's frame with a mask"),
            _ => {}
        }
        if head.opcode.is_control() {
            return Ok(());
        }
        match (head.opcode, self.parts_of) {
            (Opcode::Continuation, None) => return protocol("a continuation of nothing"),
            (Opcode::Continuation, Some(_)) => {}
            (_, Some(_)) => return protocol("a message within a message"),
            // What was read last is no longer needed.
            (_, None) => self.parts = Vec::new(),
        }
        let before = if head.opcode == Opcode::Continuation { self.parts.len() } else { 0 };
        if head.payload > (self.limits.message - before.min(self.limits.message)) as u64 {
            return Err(Violation { code: CloseCode::TOO_BIG, what: "a message that is too large" });
        }
        Ok(())
    }

    fn read(&mut self, found: Found) -> Result<Message<'_>, Violation> {
        let (opcode, bytes) = match found {
            Found::Frame(opcode, range) => (opcode, &self.bytes[range]),
            Found::Parts(opcode) => (opcode, self.parts.as_slice()),
        };
        let read = match opcode {
            Opcode::Text => text(bytes).map(Message::Text),
            Opcode::Binary | Opcode::Continuation => Ok(Message::Binary(bytes)),
            Opcode::Ping => Ok(Message::Ping(bytes)),
            Opcode::Pong => Ok(Message::Pong),
            Opcode::Close => close(bytes),
        };
        self.is_over |= read.is_err() || opcode == Opcode::Close;
        self.was_closed |= read.is_ok() && opcode == Opcode::Close;
        read
    }
}

impl BadHead {
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
    if !code.may_be_sent() {
        return Err(Violation { code: CloseCode::PROTOCOL, what: "a close code that may not be sent" });
    }
    Ok(Message::Close(Some(code), text(reason)?))
}
