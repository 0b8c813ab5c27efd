//! A body whose bytes are counted, and which knows whether all of it was sent.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::{End, RequestLine};

pub(super) struct LoggedBody {
    body: Body,
    /// Dropped, and so written, when the body has ended; with the body where the client leaves before.
    line: Option<RequestLine>,
}

impl LoggedBody {
    pub(super) fn wrap(body: Body, mut line: RequestLine) -> Body {
        if http_body::Body::is_end_stream(&body) {
            line.set_end(End::Complete);
            return body;
        }
        Body::new(Self { body, line: Some(line) })
    }

    fn finish(&mut self, end: End) {
        if let Some(mut line) = self.line.take() {
            line.set_end(end);
        }
    }
}

impl http_body::Body for LoggedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = ready!(Pin::new(&mut self.body).poll_frame(context));
        match &polled {
            Some(Ok(frame)) => {
                if let (Some(line), Some(data)) = (&self.line, frame.data_ref()) {
                    line.log().count_sent(data.len());
                }
                // A body of known length is not asked again.
                if self.body.is_end_stream() {
                    self.finish(End::Complete);
                }
            }
            Some(Err(_)) => self.finish(End::Failed),
            None => self.finish(End::Complete),
        }
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
