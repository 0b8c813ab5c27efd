//! A WebSocket on a stream of bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::frame::{CloseCode, Opcode};
use crate::inbox::{Inbox, Limits, Message, Violation};
use crate::outbox::{Class, Outbox};

/// Past this much that waits to be sent, pings go without an answer: the peer does not read.
const TOO_MUCH_FOR_PONGS: usize = 16 << 10;
/// The longest reason that fits into a close frame.
const LONGEST_REASON: usize = 123;

/// Which end of the connection we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// We were called.
    Server,
    /// We have called.
    Client,
}

/// Why nothing more comes.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The peer is gone without a word.
    #[error("the connection ended without a close frame")]
    Ended,
    /// The stream failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A WebSocket. Waiting is cancel-safe throughout: [`WebSocket::poll_fill`] and [`WebSocket::poll_flush`] wait, and
/// everything else is done at once.
#[derive(Debug)]
pub struct WebSocket<S> {
    stream: S,
    inbox: Inbox,
    outbox: Outbox,
    is_closing: bool,
    last_words: Option<ViolationText>,
}

/// What a peer that broke the protocol is told before the close frame, as a text.
pub type ViolationText = fn(&Violation) -> String;

impl<S> WebSocket<S> {
    /// A WebSocket on a stream on which the handshake is done. `arrived` are bytes that came after it.
    pub fn new(stream: S, role: Role, limits: Limits, arrived: &[u8]) -> Self {
        let (inbox, outbox) = (Inbox::new(role, limits, arrived), Outbox::new(role));
        Self { stream, inbox, outbox, is_closing: false, last_words: None }
    }

    /// Tells a peer that broke the protocol more than a close frame holds.
    pub fn with_violation_text(self, last_words: ViolationText) -> Self {
        Self { last_words: Some(last_words), ..self }
    }

    /// The stream underneath. Reading from it or writing to it would break the WebSocket.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// The next message that has arrived; `None` until there is more. Pings are answered. After a violation or a close
    /// frame nothing more comes, and the close frame that answers it waits to be sent.
    #[expect(clippy::should_implement_trait, reason = "it lends what it returns")]
    pub fn next(&mut self) -> Option<Result<Message<'_>, Violation>> {
        let message = self.inbox.next()?;
        match &message {
            Ok(Message::Ping(payload)) if self.outbox.waiting() < TOO_MUCH_FOR_PONGS && !self.is_closing => {
                self.outbox.push(Opcode::Pong, Class::Control, payload.len(), |out| {
                    out.extend_from_slice(payload);
                });
            }
            Ok(Message::Close(code, _)) if !self.is_closing => {
                self.is_closing = true;
                push_close(&mut self.outbox, *code, "");
            }
            Err(violation) if !self.is_closing => {
                self.is_closing = true;
                if let Some(text) = self.last_words.map(|say| say(violation)) {
                    self.outbox.push(Opcode::Text, Class::Control, text.len(), |out| {
                        out.extend_from_slice(text.as_bytes());
                    });
                }
                push_close(&mut self.outbox, Some(violation.code), violation.what);
            }
            _ => {}
        }
        Some(message)
    }

    /// How many frames the peer has sent, pings and parts of messages included.
    pub fn frames(&self) -> u64 {
        self.inbox.frames()
    }

    /// Puts a frame in line. Its payload has exactly `length` bytes, which `fill` appends. Nothing is sent after a close.
    pub fn send(&mut self, opcode: Opcode, class: Class, length: usize, fill: impl FnOnce(&mut Vec<u8>)) {
        if !self.is_closing {
            self.outbox.push(opcode, class, length, fill);
        }
    }

    /// Puts a text in line.
    pub fn send_text(&mut self, text: &str) {
        self.send(Opcode::Text, Class::Control, text.len(), |out| out.extend_from_slice(text.as_bytes()));
    }

    /// Asks whether the peer is there.
    pub fn ping(&mut self) {
        if self.outbox.waiting() < TOO_MUCH_FOR_PONGS {
            self.send(Opcode::Ping, Class::Control, 0, |_| {});
        }
    }

    /// Says that nothing more follows. What was put in line before it is still sent.
    pub fn close(&mut self, code: CloseCode, reason: &str) {
        if !self.is_closing {
            self.is_closing = true;
            push_close(&mut self.outbox, Some(code), reason);
        }
    }

    /// Stops listening: what the peer still sends is not looked at.
    pub fn stop_reading(&mut self) {
        self.inbox.close();
    }

    /// Whether a close frame was sent or waits to be.
    pub fn is_closing(&self) -> bool {
        self.is_closing
    }

    /// How many bytes wait to be sent.
    pub fn queued_bytes(&self) -> usize {
        self.outbox.waiting()
    }

    /// How many of them may not be thrown away. It looks at every frame that waits.
    pub fn queued_control_bytes(&self) -> usize {
        self.outbox.queued_control_bytes()
    }

    /// Throws away audio that waits, the oldest first, until at most `keep` bytes of it are left. How many went.
    pub fn drop_audio(&mut self, keep: usize) -> usize {
        self.outbox.drop_audio(keep)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocket<S> {
    /// Waits until more has arrived.
    pub fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<(), SocketError>> {
        let mut room = ReadBuf::new(self.inbox.room());
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut room))?;
        let count = room.filled().len();
        if count == 0 {
            return Poll::Ready(Err(SocketError::Ended));
        }
        self.inbox.arrived(count);
        Poll::Ready(Ok(()))
    }

    /// Sends what waits, for as long as the peer takes it.
    pub fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), SocketError>> {
        while self.outbox.waiting() > 0 {
            let count = ready!(Pin::new(&mut self.stream).poll_write(context, self.outbox.unsent()))?;
            if count == 0 {
                return Poll::Ready(Err(SocketError::Ended));
            }
            self.outbox.sent(count);
        }
        Pin::new(&mut self.stream).poll_flush(context).map_err(SocketError::Io)
    }

    /// Waits until more has arrived.
    pub async fn fill(&mut self) -> Result<(), SocketError> {
        std::future::poll_fn(|context| self.poll_fill(context)).await
    }

    /// Sends everything that waits.
    pub async fn flush(&mut self) -> Result<(), SocketError> {
        std::future::poll_fn(|context| self.poll_flush(context)).await
    }

    /// Sends what waits, a close frame at the end of it, and reads until the peer has closed too. To be called within
    /// a time limit: a peer may never answer.
    pub async fn finish(&mut self, code: CloseCode, reason: &str) -> Result<(), SocketError> {
        self.close(code, reason);
        self.flush().await?;
        let mut is_shut = false;
        loop {
            // Whatever it is, nobody wants it any more; only its end counts.
            let mut is_readable = self.inbox.is_open();
            while let Some(message) = self.inbox.next() {
                is_readable = message.is_ok();
            }
            if self.inbox.was_closed() {
                return Ok(());
            }
            if !is_readable && !is_shut {
                // No close frame will be found in it. The peer learns that we have said everything, and what it has
                // still sent is read: a connection that is dropped with unread bytes takes our last words with it.
                is_shut = true;
                std::future::poll_fn(|context| Pin::new(&mut self.stream).poll_shutdown(context)).await?;
            }
            match self.fill().await {
                Err(SocketError::Ended) if is_shut => return Ok(()),
                filled => filled?,
            }
        }
    }
}

fn push_close(outbox: &mut Outbox, code: Option<CloseCode>, reason: &str) {
    let reason = &reason[..reason.floor_char_boundary(LONGEST_REASON)];
    let Some(code) = code else {
        outbox.push(Opcode::Close, Class::Control, 0, |_| {});
        return;
    };
    outbox.push(Opcode::Close, Class::Control, 2 + reason.len(), |out| {
        out.extend_from_slice(&code.0.to_be_bytes());
        out.extend_from_slice(reason.as_bytes());
    });
}
