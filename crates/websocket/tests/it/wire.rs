//! Frames written by hand, and a stream that arrives and leaves in pieces.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use quarterdeck_websocket::{CloseCode, Limits, Message, Role, SocketError, Violation, WebSocket};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub(crate) const CONTINUATION: u8 = 0;
pub(crate) const TEXT: u8 = 1;
pub(crate) const BINARY: u8 = 2;
pub(crate) const CLOSE: u8 = 8;
pub(crate) const PING: u8 = 9;
pub(crate) const PONG: u8 = 10;

/// A frame whose first byte is `flags | opcode`.
pub(crate) fn frame(first: u8, mask: Option<[u8; 4]>, payload: &[u8]) -> Vec<u8> {
    let mut bytes = head(first, mask, payload.len() as u64);
    let mask = mask.unwrap_or_default();
    bytes.extend(payload.iter().enumerate().map(|(place, byte)| byte ^ mask[place % 4]));
    bytes
}

/// The header of a frame alone.
pub(crate) fn head(first: u8, mask: Option<[u8; 4]>, payload: u64) -> Vec<u8> {
    let masked = if mask.is_some() { 0x80 } else { 0 };
    let mut bytes = vec![first];
    match payload {
        0..=125 => bytes.push(masked | u8::try_from(payload).unwrap()),
        126..=0xffff => {
            bytes.push(masked | 126);
            bytes.extend(u16::try_from(payload).unwrap().to_be_bytes());
        }
        _ => {
            bytes.push(masked | 127);
            bytes.extend(payload.to_be_bytes());
        }
    }
    bytes.extend(mask.into_iter().flatten());
    bytes
}

/// The mask that a peer of this role's end uses.
pub(crate) fn mask_to(role: Role) -> Option<[u8; 4]> {
    (role == Role::Server).then_some([0x11, 0x22, 0x44, 0x88])
}

/// A stream whose pieces arrive as they were cut, and that takes only so many bytes.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    pub(crate) arriving: VecDeque<Vec<u8>>,
    pub(crate) taken: Vec<u8>,
    /// How many more bytes it takes before it has to be waited for.
    pub(crate) takes: usize,
    /// The most room that was ever offered to read into.
    pub(crate) max_read_bytes: usize,
}

impl Pieces {
    pub(crate) fn arriving(pieces: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self { arriving: pieces.into_iter().filter(|piece| !piece.is_empty()).collect(), ..Self::default() }
    }
}

impl AsyncRead for Pieces {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.max_read_bytes = self.max_read_bytes.max(room.remaining());
        let Some(mut piece) = self.arriving.pop_front() else { return Poll::Ready(Ok(())) };
        let count = piece.len().min(room.remaining());
        let rest = piece.split_off(count);
        room.put_slice(&piece);
        if !rest.is_empty() {
            self.arriving.push_front(rest);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pieces {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.takes == 0 {
            return Poll::Pending;
        }
        let count = bytes.len().min(self.takes);
        self.taken.extend_from_slice(&bytes[..count]);
        self.takes -= count;
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A message that can be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kept {
    Text(String),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong,
    Close(Option<CloseCode>, String),
}

impl From<Message<'_>> for Kept {
    fn from(message: Message<'_>) -> Self {
        match message {
            Message::Text(text) => Self::Text(text.to_owned()),
            Message::Binary(bytes) => Self::Binary(bytes.to_vec()),
            Message::Ping(bytes) => Self::Ping(bytes.to_vec()),
            Message::Pong => Self::Pong,
            Message::Close(code, reason) => Self::Close(code, reason.to_owned()),
        }
    }
}

/// Reads everything that arrives, up to the end or the first violation.
pub(crate) fn read_all<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut WebSocket<S>,
) -> (Vec<Kept>, Option<Violation>) {
    let (mut read, mut context) = (Vec::new(), Context::from_waker(Waker::noop()));
    loop {
        while let Some(message) = socket.next() {
            match message {
                Ok(message) => read.push(message.into()),
                Err(violation) => return (read, Some(violation)),
            }
        }
        match socket.poll_fill(&mut context) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(SocketError::Ended)) => return (read, None),
            other => panic!("{other:?}"),
        }
    }
}

/// Reads bytes that arrive at once, at a limit.
pub(crate) fn read_bytes(role: Role, message: usize, bytes: &[u8]) -> (Vec<Kept>, Option<Violation>) {
    let stream = Pieces::arriving([bytes.to_vec()]);
    read_all(&mut WebSocket::new(stream, role, Limits { max_message_bytes: message }, &[]))
}

/// Sends as much as the stream takes.
pub(crate) fn flush<S: AsyncRead + AsyncWrite + Unpin>(socket: &mut WebSocket<S>) {
    let _ = socket.poll_flush(&mut Context::from_waker(Waker::noop())).map(Result::unwrap);
}
