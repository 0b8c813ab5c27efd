//! A WebSocket to a provider that is watched: it pings into silence, and gives up on a provider that is gone or does
//! not read.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use quarterdeck_contracts::LiveError;
use quarterdeck_websocket::{Class, CloseCode, Message, Opcode, WebSocket};
use serde_json::Value;
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::{Stream, Troubles};

/// After so much silence the provider is asked whether it is there, and again after as much more.
const PING_AFTER: Duration = Duration::from_secs(20);
/// After so much silence it is not.
const GONE_AFTER: Duration = Duration::from_secs(45);
/// How long a goodbye may take.
const GOODBYE: Duration = Duration::from_secs(1);
/// From so many bytes that wait on, old audio goes.
const MUCH_WAITS: usize = 64 << 10;
/// How much audio stays then: about a second, in base64 with its frames.
const AUDIO_KEPT: usize = 48 << 10;
/// What waits beside audio is small, so this much means that nobody reads.
const TOO_MUCH_WAITS: usize = 8 << 20;

/// A line to a provider.
pub(crate) struct Line {
    socket: WebSocket<Box<dyn Stream>>,
    pub(crate) troubles: Troubles,
    /// One timer for the whole line. It is set again when it rings, not when something arrives.
    timer: Pin<Box<Sleep>>,
    heard: Instant,
    pinged: Instant,
    /// Why nothing more comes.
    failure: Option<LiveError>,
    /// Whether others may wait behind the message that was looked at last.
    is_behind: bool,
}

/// What [`Line::next`] finds.
pub(crate) enum Arrived<'a> {
    /// A message, text or bytes alike.
    Message(&'a [u8]),
    /// Something that is about the connection only.
    Nothing,
}

impl Line {
    pub(crate) fn new(socket: WebSocket<Box<dyn Stream>>, troubles: Troubles) -> Self {
        let now = Instant::now();
        Self {
            socket,
            troubles,
            timer: Box::pin(sleep(PING_AFTER)),
            heard: now,
            pinged: now,
            failure: None,
            is_behind: false,
        }
    }

    /// Waits until more has arrived, or something else is to be done. An error is final.
    pub(crate) fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<(), LiveError>> {
        if self.is_behind {
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
                self.heard = Instant::now();
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(broken)) => Poll::Ready(Err(self.fail(self.troubles.broken(&broken)))),
            Poll::Pending => {
                // Answers to pings wait for nobody else to send something.
                if self.socket.queued_bytes() > 0
                    && let Poll::Ready(Err(broken)) = self.socket.poll_flush(context)
                {
                    return Poll::Ready(Err(self.fail(self.troubles.broken(&broken))));
                }
                self.poll_silence(context)
            }
        }
    }

    /// The next message that has arrived. Whoever asks for no more before `None` came need not wait: [`Line::poll_fill`]
    /// is ready until then.
    pub(crate) fn next(&mut self) -> Option<Arrived<'_>> {
        let next = self.socket.next();
        self.is_behind = next.is_some();
        let arrived = match next? {
            Ok(Message::Text(text)) => Arrived::Message(text.as_bytes()),
            Ok(Message::Binary(bytes)) => Arrived::Message(bytes),
            Ok(Message::Ping(_) | Message::Pong) => Arrived::Nothing,
            Ok(Message::Close(code, reason)) => {
                self.failure = Some(self.troubles.closed(code.map(|code| code.0), reason));
                Arrived::Nothing
            }
            Err(violation) => {
                self.failure = Some(self.troubles.violated(violation));
                Arrived::Nothing
            }
        };
        Some(arrived)
    }

    /// Puts a message in line.
    pub(crate) fn send(&mut self, message: &Value) {
        self.socket.send_text(&message.to_string());
        if self.socket.queued_bytes() > TOO_MUCH_WAITS && self.failure.is_none() {
            self.failure = Some(self.troubles.does_not_read());
        }
    }

    /// Puts audio in line: a message of exactly `length` bytes that `fill` appends. The oldest goes when the provider does
    /// not read.
    pub(crate) fn send_audio(&mut self, length: usize, fill: impl FnOnce(&mut Vec<u8>)) {
        self.socket.send(Opcode::Text, Class::Audio, length, fill);
        if self.socket.queued_bytes() > MUCH_WAITS {
            self.socket.drop_audio(AUDIO_KEPT);
        }
    }

    /// Sends what is in line.
    pub(crate) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), LiveError>> {
        if let Some(failure) = &self.failure {
            return Poll::Ready(Err(failure.clone()));
        }
        match self.socket.poll_flush(context) {
            Poll::Ready(Err(broken)) => Poll::Ready(Err(self.fail(self.troubles.broken(&broken)))),
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

    /// Says goodbye. A provider that does not answer is left all the same.
    pub(crate) async fn close(mut self) {
        let _ = timeout(GOODBYE, self.socket.finish(CloseCode::NORMAL, "")).await;
    }

    fn fail(&mut self, error: LiveError) -> LiveError {
        self.failure.get_or_insert(error).clone()
    }

    /// Looks at the clock when the timer rings, asks whether anybody is there, and gives up in the end.
    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<Result<(), LiveError>> {
        while self.timer.as_mut().poll(context).is_ready() {
            let now = Instant::now();
            if now.duration_since(self.heard) >= GONE_AFTER {
                return Poll::Ready(Err(self.fail(self.troubles.silent(GONE_AFTER))));
            }
            if now.duration_since(self.heard.max(self.pinged)) >= PING_AFTER {
                self.pinged = now;
                self.socket.ping();
                if let Poll::Ready(Err(broken)) = self.socket.poll_flush(context) {
                    return Poll::Ready(Err(self.fail(self.troubles.broken(&broken))));
                }
            }
            let again = (self.heard.max(self.pinged) + PING_AFTER).min(self.heard + GONE_AFTER);
            self.timer.as_mut().reset(again);
        }
        Poll::Pending
    }
}
