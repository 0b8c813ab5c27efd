//! The client's end of a call, on a WebSocket.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use quarterdeck_agents::voice::{ClientLink, ClientMessage, CloseReason, Disconnect, ServerMessage};
use quarterdeck_contracts::{ErrorType, ToolError};
use quarterdeck_websocket::{CloseCode, Limits, Message, WebSocket};
use tokio::io::{AsyncRead, AsyncWrite};

use super::client_frame::{self, AudioFormat, ClientFrame, Start};
use super::server_message::{self, VoiceMessage};
use super::token_bucket::TokenBucket;
use crate::nodes::ClientCall;
use crate::page_settings::Shown;
use crate::quota::Permit;
use crate::request_log::{End, RequestLine};

/// Per message: more than a second of audio in base64, and any text.
pub(super) const LIMITS: Limits = Limits { max_message_bytes: 64 << 10 };
/// Frames per second, and burst. Audio has fifty frames a second.
const FRAME_RATE: (f64, f64) = (300.0, 1_000.0);
/// Bytes per second, and burst: twice the rate of audio, and what a client has buffered while offline. Everything else
/// is small beside it.
const BYTE_RATE: (f64, f64) = (2.0 * 32_000.0, 10.0 * 32_000.0);
/// Texts per second, and burst. The model answers each.
const TEXT_RATE: (f64, f64) = (1.0, 20.0);
/// Invalid messages per second, and burst. A client that exceeds it does not read the errors.
const ERROR_RATE: (f64, f64) = (20.0 / 60.0, 20.0);
/// Messages, other than audio, queued for a client that does not read.
const MAX_QUEUED_CONTROL_BYTES: usize = 256 << 10;
/// How long the client may take to close its end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// What the link needs from the server.
pub(super) struct LinkContext {
    /// Creates the token that resumes a session.
    pub(super) resume_token: Box<dyn Fn(&str) -> String + Send>,
    pub(super) now_ms: Box<dyn Fn() -> u64 + Send>,
    /// What is shown of tool calls.
    pub(super) show: Shown,
    /// The line of the call in the log, written when the link is dropped.
    pub(super) line: RequestLine,
    /// Held while the link is open.
    pub(super) _permit: Option<Permit>,
}

pub(super) struct WebSocketLink<S> {
    socket: WebSocket<S>,
    context: LinkContext,
    format: AudioFormat,
    /// Whether more may have arrived together with `start`.
    has_unread: bool,
    /// Holds a text that had to be unescaped.
    text: String,
    /// The link's own reply to the last message.
    reply: Option<Reply>,
    disconnect: Option<Disconnect>,
    frame_bucket: TokenBucket,
    counted_frames: u64,
    byte_bucket: TokenBucket,
    text_bucket: TokenBucket,
    error_bucket: TokenBucket,
    /// The place of its client's one call; held while the link is open.
    client_call: Option<ClientCall>,
}

enum Reply {
    Pong,
    Error(ErrorType, String),
    Reject(&'static str),
}

impl<S> WebSocketLink<S> {
    pub(super) fn new(socket: WebSocket<S>, context: LinkContext) -> Self {
        Self {
            socket: socket.with_violation_text(server_message::violation_text),
            context,
            format: AudioFormat::Binary,
            has_unread: true,
            text: String::new(),
            reply: None,
            disconnect: None,
            frame_bucket: TokenBucket::new(FRAME_RATE.0, FRAME_RATE.1),
            counted_frames: 0,
            byte_bucket: TokenBucket::new(BYTE_RATE.0, BYTE_RATE.1),
            text_bucket: TokenBucket::new(TEXT_RATE.0, TEXT_RATE.1),
            error_bucket: TokenBucket::new(ERROR_RATE.0, ERROR_RATE.1),
            client_call: None,
        }
    }

    pub(super) fn hold_call(&mut self, call: Option<ClientCall>) {
        self.client_call = call;
    }

    /// Counts frames and sends the link's own reply. A message is borrowed until the next is requested, so its reply
    /// waits until then.
    fn send_reply(&mut self) {
        let arrived = self.socket.frames() - self.counted_frames;
        self.counted_frames += arrived;
        if arrived > 0 && !self.frame_bucket.take(arrived as f64) {
            self.reject("too many frames");
        }
        match self.reply.take() {
            None => {}
            Some(Reply::Pong) => self.send_control(&VoiceMessage::Pong.to_text()),
            Some(Reply::Reject(reason)) => self.reject(reason),
            Some(Reply::Error(..)) if !self.error_bucket.take(1.0) => {
                self.reject("too many invalid messages")
            }
            Some(Reply::Error(kind, message)) => {
                let retryable = kind == ErrorType::RateLimit;
                let error = ToolError { retryable, ..ToolError::new(kind, message) };
                self.send_control(&VoiceMessage::error(&error).to_text());
            }
        }
    }

    /// Closes the connection of a client that breaks a limit.
    fn reject(&mut self, reason: &'static str) {
        if self.disconnect.is_none() {
            let message = format!("Connection closed: {reason}.");
            let error = ToolError { retryable: true, ..ToolError::new(ErrorType::RateLimit, message) };
            self.socket.send_text(&VoiceMessage::error(&error).to_text());
            self.socket.close(CloseCode::POLICY, reason);
            self.disconnect = Some(Disconnect::Rejected(reason));
        }
    }

    fn send_control(&mut self, text: &str) {
        // Only what is queued already counts: a single large message may still be read at once.
        if self.socket.queued_bytes() > MAX_QUEUED_CONTROL_BYTES
            && self.socket.queued_control_bytes() > MAX_QUEUED_CONTROL_BYTES
        {
            return self.reject("messages are not read");
        }
        self.socket.send_text(text);
    }
}

pub(super) enum FirstMessage {
    Start(Box<Start>),
    /// The client left or was rejected.
    Disconnect,
    /// Something else, with the error message.
    Other(String),
}

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocketLink<S> {
    /// Waits for `start`.
    pub(super) async fn first(&mut self) -> FirstMessage {
        loop {
            match self.socket.next() {
                Some(Ok(Message::Ping(_) | Message::Pong)) => {}
                Some(Ok(Message::Text(text))) => match client_frame::decode_text(text) {
                    Ok(ClientFrame::Start(start)) => {
                        self.format = start.audio;
                        return FirstMessage::Start(start);
                    }
                    Ok(_) => return FirstMessage::Other("The first message must be `start`.".into()),
                    // It may be a malformed `start`, which can be sent again.
                    Err(error) => {
                        self.reply = Some(Reply::Error(ErrorType::Validation, error));
                        self.send_reply();
                    }
                },
                Some(Ok(Message::Binary(_))) => {
                    return FirstMessage::Other(
                        "The first message must be `start`; send audio after it.".into(),
                    );
                }
                Some(Ok(Message::Close(..)) | Err(_)) => return FirstMessage::Disconnect,
                None => {
                    self.send_reply();
                    if self.disconnect.is_some()
                        || self.socket.flush().await.is_err()
                        || self.socket.fill().await.is_err()
                    {
                        return FirstMessage::Disconnect;
                    }
                }
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> ClientLink for WebSocketLink<S> {
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Disconnect>> {
        self.send_reply();
        if let Some(disconnect) = &self.disconnect {
            // The error is sent if possible; a rejected client is not waited for.
            let _ = self.socket.poll_flush(context);
            return Poll::Ready(Err(disconnect.clone()));
        }
        if std::mem::take(&mut self.has_unread) {
            return Poll::Ready(Ok(()));
        }
        let filled = ready!(self.socket.poll_fill(context));
        Poll::Ready(filled.map_err(|_| self.disconnect.insert(Disconnect::Lost).clone()))
    }

    fn next(&mut self) -> Option<ClientMessage<'_>> {
        self.send_reply();
        if self.disconnect.is_some() {
            return None;
        }
        let (frame, length) = match self.socket.next()? {
            Ok(Message::Binary(bytes)) => (client_frame::decode_binary(bytes), bytes.len()),
            Ok(Message::Text(text)) => (client_frame::decode_text(text), text.len()),
            Ok(Message::Ping(_) | Message::Pong) => (Ok(ClientFrame::Empty), 0),
            Ok(Message::Close(..)) => {
                self.disconnect = Some(Disconnect::Closed);
                return None;
            }
            Err(violation) => {
                self.disconnect = Some(Disconnect::Rejected(violation.what));
                return None;
            }
        };
        let (weight, excess) = match &frame {
            Ok(ClientFrame::Audio(audio)) => (audio.samples_len(), "audio faster than real time"),
            _ => (length, "too many bytes"),
        };
        if !self.byte_bucket.take(weight as f64) {
            self.reply = Some(Reply::Reject(excess));
            return Some(ClientMessage::KeepAlive);
        }
        Some(match frame {
            Ok(ClientFrame::Audio(audio)) => ClientMessage::Audio(audio),
            Ok(ClientFrame::Text(_) | ClientFrame::Confirm { .. } | ClientFrame::Interrupt)
                if !self.text_bucket.take(1.0) =>
            {
                self.reply = Some(Reply::Error(ErrorType::RateLimit, "Too many messages; wait 1 s.".into()));
                ClientMessage::KeepAlive
            }
            Ok(ClientFrame::Text(text)) => ClientMessage::Text(stored(text, &mut self.text)),
            Ok(ClientFrame::Confirm { token, approve }) => {
                ClientMessage::Confirm { token: stored(token, &mut self.text), is_approved: approve }
            }
            Ok(ClientFrame::Played(time)) => ClientMessage::Played(time),
            Ok(ClientFrame::Drained) => ClientMessage::Drained,
            Ok(ClientFrame::Interrupt) => ClientMessage::Interrupt,
            Ok(ClientFrame::Stop) => ClientMessage::Stop,
            Ok(ClientFrame::Empty) => ClientMessage::KeepAlive,
            Ok(ClientFrame::Ping) => {
                self.reply = Some(Reply::Pong);
                ClientMessage::KeepAlive
            }
            Ok(ClientFrame::Start(_)) => {
                let error = "The call has started; send `start` once.".into();
                self.reply = Some(Reply::Error(ErrorType::Validation, error));
                ClientMessage::KeepAlive
            }
            Err(error) => {
                self.reply = Some(Reply::Error(ErrorType::Validation, error));
                ClientMessage::KeepAlive
            }
        })
    }

    fn send(&mut self, message: ServerMessage<'_>) {
        if self.disconnect.is_some() {
            return;
        }
        if let ServerMessage::Audio(audio) = &message {
            server_message::send_audio(&mut self.socket, self.format, audio);
            return;
        }
        if let ServerMessage::Ready { session_id, .. } = &message {
            self.context.line.log().set_session(session_id);
        }
        let hidden_call = VoiceMessage::hidden_call(&message, self.context.show);
        for message in hidden_call.into_iter().chain(VoiceMessage::new(&message, &self.context)) {
            let text = message.to_text();
            self.send_control(&text);
        }
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Disconnect>> {
        let flushed = ready!(self.socket.poll_flush(context));
        Poll::Ready(flushed.map_err(|_| self.disconnect.get_or_insert(Disconnect::Lost).clone()))
    }

    fn queued_bytes(&self) -> usize {
        self.socket.queued_bytes()
    }

    fn drop_audio(&mut self, keep: usize) -> usize {
        self.socket.drop_audio(keep)
    }

    fn ping(&mut self) {
        self.socket.ping();
    }

    fn close(mut self: Box<Self>, reason: CloseReason) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (code, text) = match reason {
            CloseReason::Ended => (CloseCode::NORMAL, "call ended"),
            CloseReason::Stopping => (CloseCode::AWAY, "server shutting down"),
            CloseReason::TakenOver => (CloseCode(4001), "call taken over"),
            CloseReason::Refused => (CloseCode::POLICY, "not allowed"),
            CloseReason::AtCapacity => (CloseCode::TRY_AGAIN, "at capacity"),
            CloseReason::Idle => (CloseCode(4002), "idle timeout"),
            CloseReason::Failed => (CloseCode::INTERNAL, "model unavailable"),
        };
        if !matches!(self.disconnect, Some(Disconnect::Closed | Disconnect::Lost)) {
            self.context.line.set_end(End::Complete);
        }
        Box::pin(async move {
            // A client that does not read in time misses it.
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.socket.finish(code, text)).await;
        })
    }
}

/// Borrows a text from its frame, or from the link's own buffer.
fn stored<'a>(text: Cow<'a, str>, buffer: &'a mut String) -> &'a str {
    match text {
        Cow::Borrowed(text) => text,
        Cow::Owned(text) => {
            *buffer = text;
            buffer
        }
    }
}

#[cfg(test)]
mod tests;
