//! Streams answers as server-sent events.

pub(crate) mod data_part;
pub(crate) mod feed_body;
mod frame_clock;
pub(crate) mod held_body;
pub(crate) mod openai;
pub(crate) mod opening;
pub(crate) mod shown;
pub(crate) mod ui;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::Frame;
use quarterdeck_agents::text::{Reader, StreamEvent};
use serde::Serialize;
use tokio::time::{Instant, Sleep, sleep};

use crate::quota::Permit;
pub(crate) use frame_clock::FrameClock;
use frame_clock::{Tick, TickWaker};

/// A comment is sent after this silence.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(12);

/// How much of the room that a large frame took is kept for the next one.
const MAX_KEPT_BYTES: usize = 1 << 10;

/// Encodes the events of a turn in a protocol.
pub(crate) trait StreamEncoder: Send + Unpin + 'static {
    fn encode(&mut self, event: &StreamEvent, out: &mut Vec<u8>);

    /// Called after the last event. A turn that broke off had no end of its own.
    fn finish(&mut self, out: &mut Vec<u8>);
}

/// A body that follows a turn. Dropping it unsubscribes.
struct TurnBody<E> {
    /// What is encoded and not sent: at first, what came before the response began. Kept empty between frames, so that each is
    /// encoded where the last one was.
    encoded: Vec<u8>,
    reader: Reader,
    encoder: E,
    /// Runs out when nothing was sent for long.
    silence: Pin<Box<Sleep>>,
    clock: Arc<FrameClock>,
    tick_waker: TickWaker,
    /// With which tick the last frame went out.
    last_tick: Option<Tick>,
    has_sent: bool,
    is_over: bool,
    _permit: Option<Permit>,
}

pub(crate) fn body(
    reader: Reader,
    encoder: impl StreamEncoder,
    permit: Option<Permit>,
    clock: &Arc<FrameClock>,
) -> Body {
    body_after(Vec::new(), reader, encoder, permit, clock)
}

/// The same, after what was encoded already.
pub(crate) fn body_after(
    opening: Vec<u8>,
    reader: Reader,
    encoder: impl StreamEncoder,
    permit: Option<Permit>,
    clock: &Arc<FrameClock>,
) -> Body {
    Body::new(TurnBody {
        encoded: opening,
        reader,
        encoder,
        silence: Box::pin(sleep(KEEP_ALIVE_INTERVAL)),
        clock: clock.clone(),
        tick_waker: TickWaker::default(),
        last_tick: None,
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
        let tick = match this.encoded.is_empty() {
            true => ready!(this.poll_tick(context)),
            false => this.last_tick,
        };
        let waker = this.tick_waker.for_task(&this.clock, context);
        // The first frame waits for no tick.
        let events = Context::from_waker(if this.last_tick.is_some() { waker } else { context.waker() });
        let out = &mut this.encoded;
        // An event may have no form in this protocol; then the next one is awaited.
        while out.is_empty() {
            let encoder = &mut this.encoder;
            match this.reader.poll_events(&events, |event| encoder.encode(event, out)) {
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
                    if this.silence.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                    this.silence.as_mut().reset(Instant::now() + KEEP_ALIVE_INTERVAL);
                    if !std::mem::take(&mut this.has_sent) {
                        out.extend_from_slice(b": keep-alive\n\n");
                    }
                }
            }
        }
        let frame = Bytes::copy_from_slice(out);
        out.clear();
        out.shrink_to(MAX_KEPT_BYTES);
        this.last_tick = tick;
        Poll::Ready(Some(Ok(Frame::data(frame))))
    }
}

impl<E> TurnBody<E> {
    /// The tick with which a frame may go out. Only where there is something to send is one waited for.
    fn poll_tick(&mut self, context: &Context<'_>) -> Poll<Option<Tick>> {
        let waker = self.tick_waker.for_task(&self.clock, context);
        if self.last_tick.is_some() && self.reader.poll_ready(&Context::from_waker(waker)).is_pending() {
            return Poll::Ready(self.last_tick);
        }
        self.clock.poll_tick(self.last_tick, context).map(Some)
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
