//! A WebSocket on a stream of bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::frame::{CloseCode, Opcode};
use crate::receive_buffer::{Limits, Message, ReceiveBuffer, Violation};
use crate::send_queue::{Class, SendQueue};

/// Above this, pings are neither answered nor sent: the peer does not read.
const MAX_QUEUED_BYTES_FOR_PONG: usize = 16 << 10;
/// What fits into a close frame.
const MAX_REASON_BYTES: usize = 123;

/// Our end of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Accepts masked frames, sends unmasked ones.
    Server,
    /// Sends masked frames, accepts unmasked ones.
    Client,
}

/// Why a connection was lost.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The stream ended without a close frame.
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
    receive_buffer: ReceiveBuffer,
    send_queue: SendQueue,
    is_closing: bool,
    last_words: Option<ViolationText>,
}

/// What a peer that broke the protocol is told before the close frame, as a text.
pub type ViolationText = fn(&Violation) -> String;

impl<S> WebSocket<S> {
    /// A WebSocket on a stream on which the handshake is done. `arrived` are bytes that came after it.
    pub fn new(stream: S, role: Role, limits: Limits, arrived: &[u8]) -> Self {
        let (receive_buffer, send_queue) = (ReceiveBuffer::new(role, limits, arrived), SendQueue::new(role));
        Self { stream, receive_buffer, send_queue, is_closing: false, last_words: None }
    }

    /// Sends a text before the close frame that answers a violation.
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
        let message = self.receive_buffer.next()?;
        match &message {
            Ok(Message::Ping(payload))
                if self.send_queue.queued_bytes() < MAX_QUEUED_BYTES_FOR_PONG && !self.is_closing =>
            {
                self.send_queue.push(Opcode::Pong, Class::Control, payload.len(), |out| {
                    out.extend_from_slice(payload);
                });
            }
            Ok(Message::Close(code, _)) if !self.is_closing => {
                self.is_closing = true;
                push_close(&mut self.send_queue, *code, "");
            }
            Err(violation) if !self.is_closing => {
                self.is_closing = true;
                if let Some(text) = self.last_words.map(|say| say(violation)) {
                    self.send_queue.push(Opcode::Text, Class::Control, text.len(), |out| {
                        out.extend_from_slice(text.as_bytes());
                    });
                }
                push_close(&mut self.send_queue, Some(violation.code), violation.what);
            }
            _ => {}
        }
        Some(message)
    }

    /// How many frames the peer has sent, pings and parts of messages included.
    pub fn frames(&self) -> u64 {
        self.receive_buffer.frames()
    }

    /// Queues a frame. Its payload has exactly `length` bytes, which `fill` appends. Nothing is sent after a close.
    pub fn send(&mut self, opcode: Opcode, class: Class, length: usize, fill: impl FnOnce(&mut Vec<u8>)) {
        if !self.is_closing {
            self.send_queue.push(opcode, class, length, fill);
        }
    }

    /// Queues a text.
    pub fn send_text(&mut self, text: &str) {
        self.send(Opcode::Text, Class::Control, text.len(), |out| out.extend_from_slice(text.as_bytes()));
    }

    /// Queues a ping, unless the peer does not read.
    pub fn ping(&mut self) {
        if self.send_queue.queued_bytes() < MAX_QUEUED_BYTES_FOR_PONG {
            self.send(Opcode::Ping, Class::Control, 0, |_| {});
        }
    }

    /// Queues a close frame. What was queued before it is still sent.
    pub fn close(&mut self, code: CloseCode, reason: &str) {
        if !self.is_closing {
            self.is_closing = true;
            push_close(&mut self.send_queue, Some(code), reason);
        }
    }

    /// Stops listening: what the peer still sends is not looked at.
    pub fn stop_reading(&mut self) {
        self.receive_buffer.close();
    }

    /// Whether a close frame was sent or waits to be.
    pub fn is_closing(&self) -> bool {
        self.is_closing
    }

    /// Bytes that were not sent yet.
    pub fn queued_bytes(&self) -> usize {
        self.send_queue.queued_bytes()
    }

    /// Those of them that may not be dropped. It looks at every queued frame.
    pub fn queued_control_bytes(&self) -> usize {
        self.send_queue.queued_control_bytes()
    }

    /// Drops queued audio, the oldest first, until at most `keep` bytes of it are left. Returns the bytes dropped.
    pub fn drop_audio(&mut self, keep: usize) -> usize {
        self.send_queue.drop_audio(keep)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocket<S> {
    /// Waits until more has arrived.
    pub fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<(), SocketError>> {
        let mut spare = ReadBuf::new(self.receive_buffer.spare());
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut spare))?;
        let count = spare.filled().len();
        if count == 0 {
            return Poll::Ready(Err(SocketError::Ended));
        }
        self.receive_buffer.advance(count);
        Poll::Ready(Ok(()))
    }

    /// Sends what is queued, for as long as the peer takes it.
    pub fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), SocketError>> {
        while self.send_queue.queued_bytes() > 0 {
            let count = ready!(Pin::new(&mut self.stream).poll_write(context, self.send_queue.unsent()))?;
            if count == 0 {
                return Poll::Ready(Err(SocketError::Ended));
            }
            self.send_queue.mark_sent(count);
        }
        Pin::new(&mut self.stream).poll_flush(context).map_err(SocketError::Io)
    }

    /// Waits until more has arrived.
    pub async fn fill(&mut self) -> Result<(), SocketError> {
        std::future::poll_fn(|context| self.poll_fill(context)).await
    }

    /// Sends everything that is queued.
    pub async fn flush(&mut self) -> Result<(), SocketError> {
        std::future::poll_fn(|context| self.poll_flush(context)).await
    }

    /// Sends what is queued and a close frame, and reads until the peer has closed too. To be called within a time
    /// limit: a peer may never answer.
    pub async fn finish(&mut self, code: CloseCode, reason: &str) -> Result<(), SocketError> {
        self.close(code, reason);
        self.flush().await?;
        let mut is_shut = false;
        loop {
            // Only a close frame matters now.
            let mut is_readable = self.receive_buffer.is_open();
            while let Some(message) = self.receive_buffer.next() {
                is_readable = message.is_ok();
            }
            if self.receive_buffer.is_closed_by_peer() {
                return Ok(());
            }
            if !is_readable && !is_shut {
                // No close frame will be found in it. The peer learns that we have said everything, and what it has
                // still sent is read: a connection that is dropped with unread bytes loses what we sent last.
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

fn push_close(send_queue: &mut SendQueue, code: Option<CloseCode>, reason: &str) {
    let reason = &reason[..reason.floor_char_boundary(MAX_REASON_BYTES)];
    let Some(code) = code else {
        send_queue.push(Opcode::Close, Class::Control, 0, |_| {});
        return;
    };
    send_queue.push(Opcode::Close, Class::Control, 2 + reason.len(), |out| {
        out.extend_from_slice(&code.0.to_be_bytes());
        out.extend_from_slice(reason.as_bytes());
    });
}
