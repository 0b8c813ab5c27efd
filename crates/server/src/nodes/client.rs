//! Sends a request to another node over a connection of its own.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::{Request, Response, StatusCode};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::AbortHandle;
use tokio::time::{Instant, Sleep, sleep, timeout};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_HEAD_BYTES: usize = 64 << 10;
/// A stream of events has a comment every twelve seconds, so a body that is silent for this long has lost its node.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(45);

/// Why a node has not answered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// The request did not reach it. Nothing was done.
    #[error("the node cannot be reached: {0}")]
    Unreachable(String),
    /// The request was sent and the answer lost.
    #[error("the node did not answer: {0}")]
    Lost(String),
    /// As many requests to other nodes are open as there may be.
    #[error("too many requests to other nodes are open")]
    Busy,
}

/// The body of another node's answer. What is not read stays with that node, and dropping it closes the connection.
pub(crate) struct NodeBody {
    body: Incoming,
    silence: Pin<Box<Sleep>>,
    _connection: Connection,
    _permit: OwnedSemaphorePermit,
}

/// Drives a connection while it is held.
struct Connection(AbortHandle);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends a request to `address`, `host:port` with or without `http://`, and waits for the head of the answer. There is no
/// time limit on that wait: the caller knows how long an answer may take.
pub(super) async fn send(
    address: &str,
    request: Request<Full<Bytes>>,
    permit: OwnedSemaphorePermit,
) -> Result<Response<NodeBody>, SendError> {
    let host = host_of(address);
    let connecting = timeout(CONNECT_TIMEOUT, TcpStream::connect(host)).await;
    let stream = connecting
        .map_err(|_| SendError::Unreachable(format!("no connection within {CONNECT_TIMEOUT:?}")))?
        .map_err(|error| SendError::Unreachable(error.to_string()))?;
    // Small writes must not wait for each other; without it a request is only slower.
    let _ = stream.set_nodelay(true);
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(MAX_HEAD_BYTES)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| SendError::Unreachable(error.to_string()))?;
    let driving = tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = %error, "connection to a node ended early");
        }
    });
    let driving = Connection(driving.abort_handle());
    let response = sender.send_request(request).await.map_err(|error| SendError::Lost(error.to_string()))?;
    // A node that was started again has its old address and no old session.
    if response.status() == StatusCode::MISDIRECTED_REQUEST {
        return Err(SendError::Unreachable("another process is at its address".to_owned()));
    }
    Ok(response.map(|body| NodeBody {
        body,
        silence: Box::pin(sleep(SILENCE_TIMEOUT)),
        _connection: driving,
        _permit: permit,
    }))
}

/// The host and port of an address.
pub(super) fn host_of(address: &str) -> &str {
    address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/')
}

impl http_body::Body for NodeBody {
    type Data = Bytes;
    type Error = io::Error;

    /// An answer that breaks off is an error, so that the client's own connection breaks off too and nothing looks
    /// complete that is not.
    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = self.get_mut();
        match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Ready(frame) => {
                this.silence.as_mut().reset(Instant::now() + SILENCE_TIMEOUT);
                Poll::Ready(frame.map(|frame| frame.map_err(io::Error::other)))
            }
            Poll::Pending => match this.silence.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into()))),
                Poll::Pending => Poll::Pending,
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
