//! One line of the log for each request and each call, written when it has ended.
//!
//! A line has the route and never the path, which has ids, nor the query, which has tickets. Of the headers it has the
//! origin alone. Where its level is off, nothing is kept of a request and its body is not wrapped.

mod body;
mod line;

use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::extract::{FromRequestParts, MatchedPath, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use quarterdeck_agents::text::StreamEvent;

use crate::stream::StreamEncoder;
use body::LoggedBody;

/// Probes, files that a page loads, and what the deck and `quarterdeck top` ask for again and again: logged at `debug`.
const QUIET_ROUTES: [&str; 9] = [
    "/healthz",
    "/readyz",
    "/metrics",
    "/web/{version}/{*path}",
    "/embed.js",
    "/api/page/logo",
    "/api/deck/overview",
    "/api/deck/series",
    "/api/deck/alarms",
];
/// Of a client's or a session's id in a line. A token of another issuer may name its user at length.
const MAX_ID_CHARS: usize = 128;
const NO_FIRST_BYTE: u64 = u64::MAX;

/// What routes tell of the request that they answer. Does nothing where the line is not wanted.
#[derive(Clone, Default)]
pub(crate) struct RequestLog(Option<Arc<RequestRecord>>);

/// The owner of a line: it is written when this is dropped.
#[derive(Default)]
pub(crate) struct RequestLine {
    log: RequestLog,
    end: End,
}

/// How a request has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum End {
    /// The server has sent all of it, or has closed the call.
    Complete,
    /// The connection was lost, or closed by the client, before that.
    #[default]
    ClientLeft,
    /// What was passed on from another node broke off.
    Failed,
}

struct RequestRecord {
    number: u64,
    method: &'static str,
    route: Option<MatchedPath>,
    origin: Option<HeaderValue>,
    is_quiet: bool,
    began: Instant,
    notes: Mutex<Notes>,
    /// 0 until there is a response.
    status: AtomicU16,
    bytes: AtomicU64,
    first_byte_us: AtomicU64,
    is_written: AtomicBool,
}

/// What is only known while the request is answered.
#[derive(Default)]
struct Notes {
    client: Option<String>,
    session: Option<String>,
}

impl RequestLine {
    /// Begins the line of a request, if its level is on.
    pub(crate) fn open(number: u64, request: &Request) -> Self {
        let route = request.extensions().get::<MatchedPath>();
        let is_quiet = route.is_some_and(|route| QUIET_ROUTES.contains(&route.as_str()));
        if !line::is_enabled(is_quiet) {
            return Self::default();
        }
        Self::of(RequestRecord {
            number,
            method: method_name(request.method()),
            route: route.cloned(),
            origin: request.headers().get(header::ORIGIN).cloned(),
            is_quiet,
            began: Instant::now(),
            notes: Mutex::default(),
            status: AtomicU16::new(0),
            bytes: AtomicU64::new(0),
            first_byte_us: AtomicU64::new(NO_FIRST_BYTE),
            is_written: AtomicBool::new(false),
        })
    }

    fn of(record: RequestRecord) -> Self {
        Self { log: RequestLog(Some(Arc::new(record))), end: End::default() }
    }

    /// What routes find in the extensions of the request; `None` where there is nothing to tell.
    pub(crate) fn handle(&self) -> Option<RequestLog> {
        self.log.0.is_some().then(|| self.log.clone())
    }

    pub(crate) fn log(&self) -> &RequestLog {
        &self.log
    }

    pub(crate) fn set_end(&mut self, end: End) {
        self.end = end;
    }

    /// Hands the line over to the body of the response, or to the call that the connection becomes.
    pub(crate) fn follow(mut self, response: Response) -> Response {
        let Some(record) = &self.log.0 else { return response };
        record.status.store(response.status().as_u16(), Ordering::Relaxed);
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            // The call has a line of the same record.
            self.log = RequestLog::default();
            return response;
        }
        response.map(|body| LoggedBody::wrap(body, self))
    }
}

impl Drop for RequestLine {
    fn drop(&mut self) {
        if let Some(record) = self.log.0.take() {
            record.write(self.end);
        }
    }
}

impl RequestLog {
    pub(crate) fn set_client(&self, id: &str) {
        if let Some(record) = &self.0 {
            record.notes().client = Some(shorten(id));
        }
    }

    pub(crate) fn set_session(&self, id: &str) {
        if let Some(record) = &self.0 {
            record.notes().session = Some(shorten(id));
        }
    }

    /// Counts bytes that were handed to the connection.
    pub(crate) fn count_sent(&self, bytes: usize) {
        if let Some(record) = &self.0 {
            record.count_sent(bytes);
        }
    }

    /// The line of a call, which goes on when its request has been answered.
    pub(crate) fn into_call(self) -> RequestLine {
        if let Some(record) = &self.0 {
            record.status.store(StatusCode::SWITCHING_PROTOCOLS.as_u16(), Ordering::Relaxed);
        }
        RequestLine { log: self, end: End::default() }
    }

    /// Takes the session from the events of a turn.
    pub(crate) fn see(&self, event: &StreamEvent) {
        if let StreamEvent::Started { session_id, .. } = event {
            self.set_session(session_id);
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for RequestLog {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}

impl RequestRecord {
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn elapsed_us(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(NO_FIRST_BYTE - 1)
    }

    fn count_sent(&self, bytes: usize) {
        // Read first: only one of many frames is the first.
        if self.first_byte_us.load(Ordering::Relaxed) == NO_FIRST_BYTE {
            self.first_byte_us.store(self.elapsed_us(), Ordering::Relaxed);
        }
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// Tells the log of the session that an answer belongs to.
pub(crate) struct LoggedEncoder<E> {
    pub(crate) log: RequestLog,
    pub(crate) encoder: E,
}

impl<E: StreamEncoder> StreamEncoder for LoggedEncoder<E> {
    fn encode(&mut self, event: &StreamEvent, out: &mut Vec<u8>) {
        self.log.see(event);
        self.encoder.encode(event, out);
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.encoder.finish(out);
    }
}

/// A client may send any word as its method, and of any length.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        Method::TRACE => "TRACE",
        Method::CONNECT => "CONNECT",
        _ => "other",
    }
}

fn shorten(id: &str) -> String {
    id.chars().take(MAX_ID_CHARS).collect()
}

#[cfg(test)]
mod tests;
