//! Any bytes as a WebSocket's frames: the same messages wherever the packets end, none larger than allowed, and a
//! buffer that is bounded too.
#![no_main]

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use libfuzzer_sys::fuzz_target;
use quarterdeck_websocket::{Limits, Message, Role, WebSocket};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const MAX_MESSAGE_BYTES: usize = 4 << 10;

fuzz_target!(|data: &[u8]| {
    let Some((&cut, bytes)) = data.split_first() else { return };
    let role = if cut & 1 == 0 { Role::Server } else { Role::Client };
    let whole = read(role, bytes, usize::MAX);
    assert_eq!(whole, read(role, bytes, usize::from(cut / 2).max(1)));
});

/// What is read from bytes that arrive so many at a time, and what is answered.
fn read(role: Role, bytes: &[u8], piece: usize) -> (Vec<String>, usize) {
    let stream = Pieces { rest: bytes, piece };
    let mut socket = WebSocket::new(stream, role, Limits { max_message_bytes: MAX_MESSAGE_BYTES }, &[]);
    let (mut read, mut context) = (Vec::new(), Context::from_waker(Waker::noop()));
    loop {
        while let Some(message) = socket.next() {
            if let Ok(Message::Binary(bytes)) = message {
                assert!(bytes.len() <= MAX_MESSAGE_BYTES);
            }
            read.push(format!("{message:?}"));
        }
        if !matches!(socket.poll_fill(&mut context), Poll::Ready(Ok(()))) {
            return (read, socket.queued_bytes());
        }
    }
}

struct Pieces<'a> {
    rest: &'a [u8],
    piece: usize,
}

impl AsyncRead for Pieces<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        assert!(buffer.remaining() <= 2 * MAX_MESSAGE_BYTES);
        let (piece, rest) = self.rest.split_at(self.piece.min(buffer.remaining()).min(self.rest.len()));
        buffer.put_slice(piece);
        self.rest = rest;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pieces<'_> {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
