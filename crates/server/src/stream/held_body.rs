//! Answers in one piece: they are in memory until they are read, so each holds a place as long.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use serde::Serialize;

use crate::error::ApiError;
use crate::places::Place;

/// How much is handed to the connection at once. What it has taken is its own, and it takes no more until that is sent.
const PIECE_BYTES: usize = 64 << 10;

/// A body that holds a place until almost all of it is sent.
struct HeldBody {
    rest: Bytes,
    _place: Option<Place>,
}

/// JSON as it is sent.
pub(crate) fn written(value: &impl Serialize) -> Result<Bytes, ApiError> {
    let written = serde_json::to_vec(value);
    written.map(Bytes::from).map_err(|error| ApiError::internal("answer not written", &error))
}

/// JSON that holds a place until it is sent.
pub(crate) fn json(status: StatusCode, written: Bytes, place: Option<Place>) -> Response {
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (status, kind, Body::new(HeldBody { rest: written, _place: place })).into_response()
}

impl http_body::Body for HeldBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let piece = self.rest.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
