//! Streams answers as server-sent events.

pub(crate) mod data_part;
pub(crate) mod feed_body;
pub(crate) mod held_body;
pub(crate) mod openai;
pub(crate) mod opening;
pub(crate) mod shown;
pub(crate) mod ui;

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::Frame;
use quarterdeck_agents::text::{Reader, StreamEvent};
use serde::Serialize;
use tokio::time::{Instant, Sleep, sleep};

use crate::quota::Permit;

/// A comment is sent after this silence.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(12);

/// How far apart the frames of an answer are at least. A model that writes faster than a token in this time has several of them in a
/// frame: most of what a token costs is the write to its connection.
const MIN_FRAME_INTERVAL: Duration = Duration::from_millis(5);

/// How much of the room that a large frame took is kept for the next one.
const MAX_KEPT_BYTES: usize = 1 << 10;

/// Encodes the events of a turn in a protocol.
pub(crate) trait StreamEncoder: Send + Unpin + 'static {
    fn encode(&mut self, event: &StreamEvent, out: &mut Vec<u8>);

    /// Called after the last event. A turn that broke off had no end of its own.
    fn finish(&mut self, out: &mut Vec<u8>);
}

/// What the timer of a body is set for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timed {
    /// A comment, because nothing happens.
    KeepAlive,
    /// The next frame, because more has happened already.
    Frame,
}

/// A body that follows a turn. Dropping it unsubscribes.
struct TurnBody<E> {
    /// What is encoded and not sent: at first, what came before the response began. Kept empty between frames, so that each is
    /// encoded where the last one was.
    encoded: Vec<u8>,
    reader: Reader,
    encoder: E,
    timer: Pin<Box<Sleep>>,
    timed: Timed,
    /// When the next frame may go out.
    next_frame: Instant,
    has_sent: bool,
    is_over: bool,
    _permit: Option<Permit>,
}

pub(crate) fn body(reader: Reader, encoder: impl StreamEncoder, permit: Option<Permit>) -> Body {
    body_after(Vec::new(), reader, encoder, permit)
}

/// The same, after what was encoded already.
pub(crate) fn body_after(
    opening: Vec<u8>,
    reader: Reader,
    encoder: impl StreamEncoder,
    permit: Option<Permit>,
) -> Body {
    Body::new(TurnBody {
        encoded: opening,
        reader,
        encoder,
        timer: Box::pin(sleep(KEEP_ALIVE_INTERVAL)),
        timed: Timed::KeepAlive,
        next_frame: Instant::now(),
        has_sent: false,
        is_over: false,
        _permit: permit,
    })
}

impl<E: StreamEncoder> http_body::Body for TurnBody<E> {
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
        if this.encoded.is_empty() {
            ready!(this.poll_frame_interval(context));
        }
        let out = &mut this.encoded;
        // An event may have no form in this protocol; then the next one is awaited.
        while out.is_empty() {
            let encoder = &mut this.encoder;
            match this.reader.poll_events(context, |event| encoder.encode(event, out)) {
                Poll::Ready(true) => this.has_sent = true,
                Poll::Ready(false) => {
                    this.is_over = true;
                    this.encoder.finish(out);
                    if out.is_empty() {
                        return Poll::Ready(None);
                    }
                }
                Poll::Pending => {
                    // The timer is polled only here, so that a token costs none.
                    if this.timer.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                    this.timer.as_mut().reset(Instant::now() + KEEP_ALIVE_INTERVAL);
                    if !std::mem::take(&mut this.has_sent) {
                        out.extend_from_slice(b": keep-alive\n\n");
                    }
                }
            }
        }
        let frame = Bytes::copy_from_slice(out);
        out.clear();
        out.shrink_to(MAX_KEPT_BYTES);
        this.next_frame = Instant::now() + MIN_FRAME_INTERVAL;
        Poll::Ready(Some(Ok(Frame::data(frame))))
    }
}

impl<E> TurnBody<E> {
    /// Waits until the next frame may go out, if there is something for one already. Meanwhile the reader wakes no task, so that what
    /// happens costs nothing until it is sent.
    fn poll_frame_interval(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.timed != Timed::Frame {
            if self.reader.poll_ready(context).is_pending() || Instant::now() >= self.next_frame {
                return Poll::Ready(());
            }
            self.timed = Timed::Frame;
            self.timer.as_mut().reset(self.next_frame);
        }
        ready!(self.timer.as_mut().poll(context));
        self.timed = Timed::KeepAlive;
        self.timer.as_mut().reset(Instant::now() + KEEP_ALIVE_INTERVAL);
        Poll::Ready(())
    }
}

/// Writes one event with JSON data.
pub(crate) fn write_json(out: &mut Vec<u8>, value: &impl Serialize) {
    out.extend_from_slice(b"data: ");
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        // Half a line would break the events that follow.
        out.truncate(start);
        out.extend_from_slice(b"{}");
    }
    out.extend_from_slice(b"\n\n");
}
