//! A body of events without end, each made when the one before is sent.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body::Frame;

use crate::quota::Permit;

/// A comment is sent after this silence.
pub(crate) const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(12);

pub(crate) type NextEvent = Pin<Box<dyn Future<Output = Next> + Send>>;

pub(crate) enum Next {
    /// Bytes to send, and the future of the next.
    Send(Vec<u8>, NextEvent),
    /// The server is shutting down.
    Stop,
}

/// Follows a feed until the reader leaves or the server stops.
struct FeedBody {
    next: Option<NextEvent>,
    _permit: Permit,
}

/// A response that begins with a comment, which shows that the connection is open.
pub(crate) fn respond(first: NextEvent, permit: Permit) -> Response {
    let next: NextEvent = Box::pin(async move { Next::Send(b": here\n\n".to_vec(), first) });
    let body = FeedBody { next: Some(next), _permit: permit };
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    (headers, Body::new(body)).into_response()
}

impl http_body::Body for FeedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(next) = &mut self.next else { return Poll::Ready(None) };
        match std::task::ready!(next.as_mut().poll(context)) {
            Next::Send(out, next) => {
                self.next = Some(next);
                Poll::Ready(Some(Ok(Frame::data(out.into()))))
            }
            Next::Stop => {
                self.next = None;
                Poll::Ready(None)
            }
        }
    }
}
