//! The browser's end of a call.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use quarterdeck_agents::voice::{ClientLink, ClientMessage, CloseReason, Disconnect, ServerMessage};
use quarterdeck_contracts::{ErrorType, ToolError};
use quarterdeck_websocket::{CloseCode, Limits, Message, WebSocket};
use tokio::io::{AsyncRead, AsyncWrite};

use super::pace::Pace;
use super::said::{self, Form, Said, Start};
use super::told;
use crate::places::Place;

/// What a page may send in one message: more than a second of audio in base64, and any text.
pub(super) const LIMITS: Limits = Limits { max_message_bytes: 64 << 10 };
/// Frames a second. Audio comes in fifty, and the rest is a person's.
const FRAMES: (f64, f64) = (300.0, 1_000.0);
/// Bytes a second, and at once: audio twice as fast as anybody speaks, and what a page has kept while the network was
/// gone. Everything else is small beside it.
const BYTES: (f64, f64) = (2.0 * 32_000.0, 10.0 * 32_000.0);
/// Texts a second, and at once. The model has to answer each.
const TEXTS: (f64, f64) = (1.0, 20.0);
/// How many messages a minute may be wrong, and be answered. A page that is wrong more often does not read answers.
const FAULTS: (f64, f64) = (20.0 / 60.0, 20.0);
/// How much that must arrive may wait for a page that does not read.
const MOST_CONTROL: usize = 256 << 10;
/// How long a page may take to close its end.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the line has to know beyond its protocol.
pub(super) struct Ties {
    /// What proves later that a session was this page's.
    pub(super) resume_token: Box<dyn Fn(&str) -> String + Send>,
    /// The time of day.
    pub(super) now_ms: Box<dyn Fn() -> u64 + Send>,
    /// Room for it among the open lines, for as long as it is open.
    pub(super) _place: Option<Place>,
}

/// A page on a WebSocket.
pub(super) struct BrowserLine<S> {
    socket: WebSocket<S>,
    ties: Ties,
    form: Form,
    /// Whether something may have arrived with what the page began with.
    is_fresh: bool,
    /// Holds a text that had to be unescaped.
    words: String,
    /// What the last message is to be answered with, by the line itself.
    due: Option<Due>,
    gone: Option<Disconnect>,
    frames: Pace,
    counted: u64,
    bytes: Pace,
    texts: Pace,
    faults: Pace,
}

enum Due {
    Pong,
    Fault(ErrorType, String),
    Expulsion(&'static str),
}

impl<S> BrowserLine<S> {
    pub(super) fn new(socket: WebSocket<S>, ties: Ties) -> Self {
        Self {
            socket: socket.with_violation_text(told::last_words),
            ties,
            form: Form::Binary,
            is_fresh: true,
            words: String::new(),
            due: None,
            gone: None,
            frames: Pace::new(FRAMES.0, FRAMES.1),
            counted: 0,
            bytes: Pace::new(BYTES.0, BYTES.1),
            texts: Pace::new(TEXTS.0, TEXTS.1),
            faults: Pace::new(FAULTS.0, FAULTS.1),
        }
    }

    /// Answers what the line answers itself, and counts. A message is lent until the next one is asked for, so its
    /// answer waits until then.
    fn settle(&mut self) {
        let arrived = self.socket.frames() - self.counted;
        self.counted += arrived;
        if arrived > 0 && !self.frames.take(arrived as f64) {
            self.expel("too many frames");
        }
        match self.due.take() {
            None => {}
            Some(Due::Pong) => self.control(r#"{"type":"pong"}"#),
            Some(Due::Expulsion(why)) => self.expel(why),
            Some(Due::Fault(..)) if !self.faults.take(1.0) => self.expel("too many messages that are wrong"),
            Some(Due::Fault(kind, fault)) => {
                let error =
                    ToolError { retryable: kind == ErrorType::RateLimit, ..ToolError::new(kind, fault) };
                self.control(&told::fault(&error).to_string());
            }
        }
    }

    /// Sends a page away that does what it must not.
    fn expel(&mut self, why: &'static str) {
        if self.gone.is_none() {
            let message = format!("The connection is closed because of {why}.");
            let error = ToolError { retryable: true, ..ToolError::new(ErrorType::RateLimit, message) };
            self.socket.send_text(&told::fault(&error).to_string());
            self.socket.close(CloseCode::POLICY, why);
            self.gone = Some(Disconnect::Rejected(why));
        }
    }

    fn control(&mut self, text: &str) {
        // What waited before counts: one that is large by itself may still be read at once.
        if self.socket.queued_bytes() > MOST_CONTROL && self.socket.queued_control_bytes() > MOST_CONTROL {
            return self.expel("messages that are not read");
        }
        self.socket.send_text(text);
    }
}

/// The first thing that a page says.
pub(super) enum First {
    Start(Box<Start>),
    /// It is gone, or was sent away.
    Disconnect,
    /// It says something else.
    Other(String),
}

impl<S: AsyncRead + AsyncWrite + Unpin> BrowserLine<S> {
    /// Waits for what a page begins with.
    pub(super) async fn first(&mut self) -> First {
        loop {
            match self.socket.next() {
                Some(Ok(Message::Ping(_) | Message::Pong)) => {}
                Some(Ok(Message::Text(text))) => match said::text(text) {
                    Ok(Said::Start(start)) => {
                        self.form = start.audio;
                        return First::Start(start);
                    }
                    Ok(_) => return First::Other("The first message must be `start`.".into()),
                    // It may have been meant to be one, and can be said again.
                    Err(fault) => {
                        self.due = Some(Due::Fault(ErrorType::Validation, fault));
                        self.settle();
                    }
                },
                Some(Ok(Message::Binary(_))) => {
                    return First::Other(
                        "The first message must be `start`, and audio comes after it.".into(),
                    );
                }
                Some(Ok(Message::Close(..)) | Err(_)) => return First::Disconnect,
                None => {
                    self.settle();
                    if self.gone.is_some()
                        || self.socket.flush().await.is_err()
                        || self.socket.fill().await.is_err()
                    {
                        return First::Disconnect;
                    }
                }
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> ClientLink for BrowserLine<S> {
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Disconnect>> {
        self.settle();
        if let Some(gone) = &self.gone {
            // What it is told goes out if it can; nobody waits for a page that has been sent away.
            let _ = self.socket.poll_flush(context);
            return Poll::Ready(Err(gone.clone()));
        }
        if std::mem::take(&mut self.is_fresh) {
            return Poll::Ready(Ok(()));
        }
        ready!(self.socket.poll_fill(context)).map_err(|_| self.gone.insert(Disconnect::Lost).clone()).into()
    }

    fn next(&mut self) -> Option<ClientMessage<'_>> {
        self.settle();
        if self.gone.is_some() {
            return None;
        }
        let (said, length) = match self.socket.next()? {
            Ok(Message::Binary(bytes)) => (said::pcm(bytes), bytes.len()),
            Ok(Message::Text(text)) => (said::text(text), text.len()),
            Ok(Message::Ping(_) | Message::Pong) => (Ok(Said::Nothing), 0),
            Ok(Message::Close(..)) => {
                self.gone = Some(Disconnect::Closed);
                return None;
            }
            Err(violation) => {
                self.gone = Some(Disconnect::Rejected(violation.what));
                return None;
            }
        };
        let (weight, too_much) = match &said {
            Ok(Said::Audio(audio)) => (audio.samples_len(), "audio faster than anybody speaks"),
            _ => (length, "too many bytes"),
        };
        if !self.bytes.take(weight as f64) {
            self.due = Some(Due::Expulsion(too_much));
            return Some(ClientMessage::KeepAlive);
        }
        Some(match said {
            Ok(Said::Audio(audio)) => ClientMessage::Audio(audio),
            Ok(Said::Text(_) | Said::Confirm { .. } | Said::Interrupt) if !self.texts.take(1.0) => {
                let fault = "You ask faster than anybody can answer. Wait a moment.".into();
                self.due = Some(Due::Fault(ErrorType::RateLimit, fault));
                ClientMessage::KeepAlive
            }
            Ok(Said::Text(text)) => ClientMessage::Text(kept(text, &mut self.words)),
            Ok(Said::Confirm { token, approve }) => {
                ClientMessage::Confirm { token: kept(token, &mut self.words), is_approved: approve }
            }
            Ok(Said::Drained) => ClientMessage::Drained,
            Ok(Said::Interrupt) => ClientMessage::Interrupt,
            Ok(Said::Stop) => ClientMessage::Stop,
            Ok(Said::Nothing) => ClientMessage::KeepAlive,
            Ok(Said::Ping) => {
                self.due = Some(Due::Pong);
                ClientMessage::KeepAlive
            }
            Ok(Said::Start(_)) => {
                let fault = "The call has begun already; `start` is said once.".into();
                self.due = Some(Due::Fault(ErrorType::Validation, fault));
                ClientMessage::KeepAlive
            }
            Err(fault) => {
                self.due = Some(Due::Fault(ErrorType::Validation, fault));
                ClientMessage::KeepAlive
            }
        })
    }

    fn send(&mut self, told: ServerMessage<'_>) {
        if self.gone.is_some() {
            return;
        }
        match &told {
            ServerMessage::Audio(audio) => told::audio(&mut self.socket, self.form, audio),
            told => self.control(&told::json(told, &self.ties).to_string()),
        }
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Disconnect>> {
        let flushed = ready!(self.socket.poll_flush(context));
        Poll::Ready(flushed.map_err(|_| self.gone.get_or_insert(Disconnect::Lost).clone()))
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

    fn close(mut self: Box<Self>, why: CloseReason) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (code, reason) = match why {
            CloseReason::Ended => (CloseCode::NORMAL, "the call is over"),
            CloseReason::Stopping => (CloseCode::AWAY, "the server is about to stop"),
            CloseReason::TakenOver => (CloseCode(4001), "the call goes on elsewhere"),
            CloseReason::Refused => (CloseCode::POLICY, "not allowed"),
            CloseReason::AtCapacity => (CloseCode::TRY_AGAIN, "no room for another call"),
            CloseReason::Idle => (CloseCode(4002), "nothing was said for too long"),
            CloseReason::Failed => (CloseCode::INTERNAL, "the model cannot be reached"),
        };
        Box::pin(async move {
            // Whoever does not take it in time does not get it.
            let _ = tokio::time::timeout(PATIENCE, self.socket.finish(code, reason)).await;
        })
    }
}

/// A text where it lies, or where it is kept.
fn kept<'a>(text: Cow<'a, str>, words: &'a mut String) -> &'a str {
    match text {
        Cow::Borrowed(text) => text,
        Cow::Owned(text) => {
            *words = text;
            words
        }
    }
}

#[cfg(test)]
mod tests;
