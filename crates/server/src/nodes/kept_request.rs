//! A request as it came, kept while it is served here: if another node has its session, it is passed on.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, Uri};
use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};

/// What is needed to send a request once more.
pub(crate) struct KeptRequest {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    /// The peer of the client's connection.
    pub(super) peer: SocketAddr,
    body: Arc<Mutex<KeptBytes>>,
}

/// The pieces of a body that were read. They are shared, not copied.
#[derive(Default)]
struct KeptBytes {
    pieces: Vec<Bytes>,
    bytes: usize,
    is_too_large: bool,
}

impl KeptRequest {
    /// Keeps the request while its body is read, up to a number of bytes.
    pub(crate) fn keep(request: Request, peer: SocketAddr, max_bytes: usize) -> (Request, Self) {
        let (parts, body) = request.into_parts();
        let kept = Arc::<Mutex<KeptBytes>>::default();
        let recorded = RecordedBody { body, kept: kept.clone(), max_bytes };
        let this = Self {
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            headers: parts.headers.clone(),
            peer,
            body: kept,
        };
        (Request::from_parts(parts, Body::new(recorded)), this)
    }

    /// What was read of the body: all of it where a route reads bodies, and nothing where it reads none. `None` if it was
    /// more than is kept.
    pub(super) fn body(&self) -> Option<Bytes> {
        let kept = self.body.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept.pieces {
            _ if kept.is_too_large => None,
            [one] => Some(one.clone()),
            pieces => {
                let mut whole = BytesMut::with_capacity(kept.bytes);
                pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
                Some(whole.freeze())
            }
        }
    }
}

struct RecordedBody {
    body: Body,
    kept: Arc<Mutex<KeptBytes>>,
    max_bytes: usize,
}

impl RecordedBody {
    fn record(&self, piece: &Bytes) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_too_large || kept.bytes + piece.len() > self.max_bytes {
            *kept = KeptBytes { is_too_large: true, ..KeptBytes::default() };
            return;
        }
        kept.bytes += piece.len();
        kept.pieces.push(piece.clone());
    }
}

impl http_body::Body for RecordedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(piece) = frame.data_ref()
        {
            this.record(piece);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
