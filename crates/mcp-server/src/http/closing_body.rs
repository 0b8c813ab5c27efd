//! A body that ends when the server closes.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::combinators::BoxBody;

type Closed = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

pub(super) struct ClosingBody {
    body: BoxBody<Bytes, Infallible>,
    /// Gone once the server has closed.
    closed: Option<Closed>,
}

impl ClosingBody {
    pub(super) fn new(
        body: BoxBody<Bytes, Infallible>,
        closed: impl Future<Output = ()> + Send + Sync + 'static,
    ) -> Self {
        Self { body, closed: Some(Box::pin(closed)) }
    }
}

impl Body for ClosingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(closed) = &mut self.closed else { return Poll::Ready(None) };
        if closed.as_mut().poll(context).is_ready() {
            self.closed = None;
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(context)
    }
}
