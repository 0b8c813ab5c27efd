//! Responses in one piece. They stay in memory until they are sent, and hold a permit as long.

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
use crate::quota::Permit;

/// Handed to the connection at a time; it takes the next chunk when this one is sent.
const CHUNK_BYTES: usize = 64 << 10;

/// Holds a permit until almost all of it is sent.
struct HeldBody {
    rest: Bytes,
    _permit: Option<Permit>,
}

pub(crate) fn to_json_bytes(value: &impl Serialize) -> Result<Bytes, ApiError> {
    let bytes = serde_json::to_vec(value);
    bytes.map(Bytes::from).map_err(|error| ApiError::internal("response not serialised", &error))
}

/// A JSON response that holds a permit until it is sent.
pub(crate) fn json(status: StatusCode, bytes: Bytes, permit: Option<Permit>) -> Response {
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (status, kind, self::bytes(bytes, permit)).into_response()
}

/// A body that holds a permit until it is sent.
pub(crate) fn bytes(bytes: Bytes, permit: Option<Permit>) -> Body {
    Body::new(HeldBody { rest: bytes, _permit: permit })
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
        let chunk = self.rest.len().min(CHUNK_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(chunk)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
