//! A WebSocket to a provider with keep-alive: it pings when idle, and fails when the provider is gone or does not read.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use quarterdeck_contracts::LiveError;
use quarterdeck_websocket::{Class, CloseCode, Message, Opcode, WebSocket};
use serde_json::Value;
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::{ErrorContext, Stream};

/// How long nothing may arrive before a ping is sent.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// How long nothing may arrive before the connection counts as lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(45);
/// For the closing handshake.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// With more in the send queue, old audio is dropped.
const DROP_AUDIO_OVER_BYTES: usize = 64 << 10;
/// Audio that stays in the queue then: about a second, in base64 with its frames.
const KEPT_AUDIO_BYTES: usize = 48 << 10;
/// Beside audio the queue is small, so with more in it the provider does not read.
const MAX_QUEUED_BYTES: usize = 8 << 20;

pub(crate) struct ProviderSocket {
    socket: WebSocket<Box<dyn Stream>>,
    pub(crate) errors: ErrorContext,
    /// One timer for the whole connection. It is reset when it fires, not when something arrives.
    timer: Pin<Box<Sleep>>,
    received_at: Instant,
    pinged_at: Instant,
    /// Why nothing more comes.
    failure: Option<LiveError>,
    /// Whether there may be more messages behind the one that was read last.
    has_more: bool,
}

/// What [`ProviderSocket::next`] finds.
pub(crate) enum Received<'a> {
    /// A message, text or bytes alike.
    Message(&'a [u8]),
    /// A control frame.
    Control,
}

impl ProviderSocket {
    pub(crate) fn new(socket: WebSocket<Box<dyn Stream>>, errors: ErrorContext) -> Self {
        let now = Instant::now();
        Self {
            socket,
            errors,
            timer: Box::pin(sleep(PING_INTERVAL)),
            received_at: now,
            pinged_at: now,
            failure: None,
            has_more: false,
        }
    }

    /// Waits until more has arrived, or something else is to be done. An error is final.
    pub(crate) fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<(), LiveError>> {
        if self.has_more {
            return Poll::Ready(Ok(()));
        }
        if let Some(failure) = &self.failure {
            let failure = failure.clone();
            // The answer to a close frame is a courtesy.
            let _ = self.socket.poll_flush(context);
            return Poll::Ready(Err(failure));
        }
        match self.socket.poll_fill(context) {
            Poll::Ready(Ok(())) => {
                self.received_at = Instant::now();
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(self.fail(self.errors.connection_lost(&error)))),
            Poll::Pending => {
                // A pong must go out even if nothing else is sent.
                if self.socket.queued_bytes() > 0
                    && let Poll::Ready(Err(error)) = self.socket.poll_flush(context)
                {
                    return Poll::Ready(Err(self.fail(self.errors.connection_lost(&error))));
                }
                self.poll_idle(context)
            }
        }
    }

    /// The next message that has arrived. Until it returns `None`, [`ProviderSocket::poll_fill`] is ready.
    pub(crate) fn next(&mut self) -> Option<Received<'_>> {
        let next = self.socket.next();
        self.has_more = next.is_some();
        let received = match next? {
            Ok(Message::Text(text)) => Received::Message(text.as_bytes()),
            Ok(Message::Binary(bytes)) => Received::Message(bytes),
            Ok(Message::Ping(_) | Message::Pong) => Received::Control,
            Ok(Message::Close(code, reason)) => {
                self.failure = Some(self.errors.closed(code.map(|code| code.0), reason));
                Received::Control
            }
            Err(violation) => {
                self.failure = Some(self.errors.protocol_violation(violation));
                Received::Control
            }
        };
        Some(received)
    }

    /// Queues a message.
    pub(crate) fn send(&mut self, message: &Value) {
        self.socket.send_text(&message.to_string());
        if self.socket.queued_bytes() > MAX_QUEUED_BYTES && self.failure.is_none() {
            self.failure = Some(self.errors.send_queue_full());
        }
    }

    /// Queues audio: a message of exactly `length` bytes that `fill` appends. The oldest is dropped when the provider
    /// does not read.
    pub(crate) fn send_audio(&mut self, length: usize, fill: impl FnOnce(&mut Vec<u8>)) {
        self.socket.send(Opcode::Text, Class::Audio, length, fill);
        if self.socket.queued_bytes() > DROP_AUDIO_OVER_BYTES {
            self.socket.drop_audio(KEPT_AUDIO_BYTES);
        }
    }

    /// Sends what is queued.
    pub(crate) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), LiveError>> {
        if let Some(failure) = &self.failure {
            return Poll::Ready(Err(failure.clone()));
        }
        match self.socket.poll_flush(context) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(self.fail(self.errors.connection_lost(&error)))),
            Poll::Ready(Ok(())) => Poll::Ready(Ok(())),
            Poll::Pending => Poll::Pending,
        }
    }

    pub(crate) async fn fill(&mut self) -> Result<(), LiveError> {
        std::future::poll_fn(|context| self.poll_fill(context)).await
    }

    pub(crate) async fn flush(&mut self) -> Result<(), LiveError> {
        std::future::poll_fn(|context| self.poll_flush(context)).await
    }

    /// Closes the connection. A provider that does not answer in time is left.
    pub(crate) async fn close(mut self) {
        let _ = timeout(CLOSE_TIMEOUT, self.socket.finish(CloseCode::NORMAL, "")).await;
    }

    fn fail(&mut self, error: LiveError) -> LiveError {
        self.failure.get_or_insert(error).clone()
    }

    /// Checks the clock when the timer fires: pings, or gives up.
    fn poll_idle(&mut self, context: &mut Context<'_>) -> Poll<Result<(), LiveError>> {
        while self.timer.as_mut().poll(context).is_ready() {
            let now = Instant::now();
            if now.duration_since(self.received_at) >= IDLE_TIMEOUT {
                return Poll::Ready(Err(self.fail(self.errors.idle(IDLE_TIMEOUT))));
            }
            if now.duration_since(self.received_at.max(self.pinged_at)) >= PING_INTERVAL {
                self.pinged_at = now;
                self.socket.ping();
                if let Poll::Ready(Err(error)) = self.socket.poll_flush(context) {
                    return Poll::Ready(Err(self.fail(self.errors.connection_lost(&error))));
                }
            }
            let next =
                (self.received_at.max(self.pinged_at) + PING_INTERVAL).min(self.received_at + IDLE_TIMEOUT);
            self.timer.as_mut().reset(next);
        }
        Poll::Pending
    }
}
