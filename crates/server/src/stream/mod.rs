//! Answers as they are written, as server-sent events.

pub(crate) mod held_body;
pub(crate) mod openai;
pub(crate) mod ui;

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::Frame;
use quarterdeck_agents::text::{Reader, StreamEvent};
use serde::Serialize;
use tokio::time::{Instant, Sleep, sleep};

use crate::places::Place;

/// How long a connection is silent before a comment keeps it open.
const KEEP_ALIVE: Duration = Duration::from_secs(12);

/// Puts what happens into the words of a protocol.
pub(crate) trait Words: Send + Unpin + 'static {
    /// One event.
    fn say(&mut self, event: &StreamEvent, out: &mut Vec<u8>);

    /// There is nothing more. A turn that broke off has said no ending of its own.
    fn end(&mut self, out: &mut Vec<u8>);
}

/// A body that follows a turn. Dropping it leaves the turn.
struct Following<W> {
    reader: Reader,
    words: W,
    silence: Pin<Box<Sleep>>,
    has_spoken: bool,
    is_over: bool,
    _permit: Option<Place>,
}

/// The body that tells a turn in some words.
pub(crate) fn body(reader: Reader, words: impl Words, permit: Option<Place>) -> Body {
    Body::new(Following {
        reader,
        words,
        silence: Box::pin(sleep(KEEP_ALIVE)),
        has_spoken: false,
        is_over: false,
        _permit: permit,
    })
}

impl<W: Words> http_body::Body for Following<W> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        if this.is_over {
            return Poll::Ready(None);
        }
        let mut out = Vec::new();
        // What happens may mean nothing in this protocol; then the next thing is waited for.
        while out.is_empty() {
            let words = &mut this.words;
            match this.reader.poll_events(context, |event| words.say(event, &mut out)) {
                Poll::Ready(true) => this.has_spoken = true,
                Poll::Ready(false) => {
                    this.is_over = true;
                    this.words.end(&mut out);
                    if out.is_empty() {
                        return Poll::Ready(None);
                    }
                }
                Poll::Pending => {
                    // The timer is looked at here only, so that a token costs none.
                    if this.silence.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                    this.silence.as_mut().reset(Instant::now() + KEEP_ALIVE);
                    if !std::mem::take(&mut this.has_spoken) {
                        out.extend_from_slice(b": keep-alive\n\n");
                    }
                }
            }
        }
        Poll::Ready(Some(Ok(Frame::data(out.into()))))
    }
}

/// Writes one event with JSON.
pub(crate) fn write_json(out: &mut Vec<u8>, value: &impl Serialize) {
    out.extend_from_slice(b"data: ");
    let begun = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        // Nothing of ours fails to be written; a half line would break what follows.
        out.truncate(begun);
        out.extend_from_slice(b"{}");
    }
    out.extend_from_slice(b"\n\n");
}
