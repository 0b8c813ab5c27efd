//! One attempt: the request, the response, and every way in which it can fail.

use std::collections::VecDeque;
use std::error::Error as _;
use std::time::{Duration, SystemTime};

use quarterdeck_contracts::{ChatErrorKind, ChatEvent};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Request, Response};
use tokio::time::{Instant, timeout, timeout_at};

use crate::endpoint::Endpoint;
use crate::reply::{Accumulator, Progress, Reader};
use crate::retry::Hints;
use crate::{Fault, Limits};

/// How much of an error's body is read.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// How long a stream is still read after the finish reason. The usage follows at once or never.
const USAGE_TIMEOUT: Duration = Duration::from_secs(3);

/// A reply whose body is being read.
pub(crate) struct HttpReply<A> {
    response: Response,
    reader: Reader<A>,
    limits: Limits,
    deadline: Instant,
    /// Until when the answer must begin; `None` once it has. Comments and empty events of a server that reads a long
    /// prompt are no beginning.
    first_byte: Option<Instant>,
    received: usize,
}

pub(crate) enum Step {
    More,
    End,
}

impl<A: Accumulator> HttpReply<A> {
    /// Sends the request and waits for a successful response.
    pub(crate) async fn open(
        endpoint: &Endpoint,
        request: Request,
        accumulator: A,
        deadline: Instant,
    ) -> Result<Self, Fault> {
        let limits = endpoint.limits.clone();
        let (response, first_byte) = open(endpoint, request, deadline).await?;
        let reader = Reader::new(accumulator, limits.event);
        Ok(Self { response, reader, limits, deadline, first_byte: Some(first_byte), received: 0 })
    }

    /// Waits for the next chunk and reads it.
    pub(crate) async fn step(&mut self, events: &mut VecDeque<ChatEvent>) -> Result<Step, Fault> {
        let may_end = self.reader.progress() != Progress::Incomplete;
        let limit = if may_end { self.limits.idle.min(USAGE_TIMEOUT) } else { self.limits.idle };
        let next = deadline_after(limit).min(self.deadline);
        let (until, waited) = match self.first_byte {
            Some(until) if self.received == 0 || until > next => (until, self.limits.first_byte),
            _ => (next, limit),
        };
        match timeout_at(until, self.response.chunk()).await {
            Err(_) if may_end => Ok(Step::End),
            Err(_) => Err(timed_out(&self.limits, until == self.deadline, waited)),
            Ok(Err(_)) if may_end => Ok(Step::End),
            Ok(Err(error)) => Err(Fault::cut(format!("the connection broke: {}", error_chain(error)))),
            Ok(Ok(None)) => self.reader.end(events).map(|()| Step::End),
            Ok(Ok(Some(bytes))) => self.take(&bytes, events),
        }
    }

    pub(crate) fn finish(self, events: &mut VecDeque<ChatEvent>) -> Result<(), Fault> {
        let reply = self.reader.finish().map_err(|mut fault| {
            let kind = header(&self.response, CONTENT_TYPE.as_str());
            if let Some(kind) = kind.filter(|kind| !kind.starts_with("text/event-stream")) {
                let kind: String = kind.chars().take(100).collect();
                fault.detail.push_str(&format!(" (its content type is {kind}: is the base URL right?)"));
            }
            fault
        })?;
        events.push_back(ChatEvent::Done(reply));
        drain(self.response);
        Ok(())
    }

    fn take(&mut self, bytes: &[u8], events: &mut VecDeque<ChatEvent>) -> Result<Step, Fault> {
        self.received += bytes.len();
        if self.received > self.limits.response {
            return Err(Fault::garbled(format!("the answer is larger than {} bytes", self.limits.response)));
        }
        let progress = self.reader.feed(bytes, events)?;
        if !events.is_empty() || progress != Progress::Incomplete {
            self.first_byte = None;
        }
        Ok(if progress == Progress::Ended { Step::End } else { Step::More })
    }
}

/// Sends a request and waits for a successful response. Its body must begin by the instant that comes with it.
pub(crate) async fn open(
    endpoint: &Endpoint,
    request: Request,
    deadline: Instant,
) -> Result<(Response, Instant), Fault> {
    let limits = &endpoint.limits;
    let first_byte = deadline_after(limits.first_byte).min(deadline);
    let response = match timeout_at(first_byte, endpoint.client.execute(request)).await {
        Err(_) => return Err(timed_out(limits, first_byte == deadline, limits.first_byte)),
        Ok(Err(error)) => return Err(send_failed(error)),
        Ok(Ok(response)) => response,
    };
    if !response.status().is_success() {
        return Err(error_response(response, deadline_after(limits.idle).min(deadline)).await);
    }
    Ok((response, first_byte))
}

/// Reads the little that follows a complete reply, so that the connection can be used for the next one. In the background.
fn drain(mut response: Response) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    runtime.spawn(timeout(Duration::from_secs(1), async move {
        let mut left = MAX_ERROR_BYTES;
        while let Ok(Some(bytes)) = response.chunk().await {
            left = left.saturating_sub(bytes.len());
            if left == 0 {
                break;
            }
        }
    }));
}

/// A point in time from now, at most a year away: `Instant` cannot represent all that `Duration` can.
pub(crate) fn deadline_after(limit: Duration) -> Instant {
    Instant::now() + limit.min(Duration::from_secs(365 * 24 * 60 * 60))
}

/// Not retryable: the caller has waited long enough.
pub(crate) fn timed_out(limits: &Limits, is_deadline: bool, waited: Duration) -> Fault {
    let detail = match is_deadline {
        true => format!("the answer was not complete after {:?}", limits.total),
        false => format!("nothing came for {waited:?}"),
    };
    Fault::new(ChatErrorKind::Silent, detail)
}

fn send_failed(error: reqwest::Error) -> Fault {
    let opening =
        if error.is_connect() { "no connection" } else { "the connection broke before an answer came" };
    Fault::retryable(ChatErrorKind::Unreachable, format!("{opening}: {}", error_chain(error)))
}

/// Reads a response with an error status.
pub(crate) async fn error_response(mut response: Response, until: Instant) -> Fault {
    let status = response.status();
    if status.is_redirection() {
        let detail = format!(
            "HTTP {} (a redirect, which is not followed: set the base URL to where it leads)",
            status.as_u16()
        );
        return Fault::new(ChatErrorKind::Rejected, detail);
    }
    let hints = Hints::read(|name| header(&response, name), wall_clock());
    let is_page = header(&response, CONTENT_TYPE.as_str()).is_some_and(|kind| kind.contains("html"));
    let request_id = ["request-id", "x-request-id"].iter().find_map(|name| header(&response, name));
    let request_id: Option<String> = request_id.map(|id| id.chars().take(100).collect());
    let mut body = Vec::new();
    // An incomplete body does no harm: the status says enough.
    while let Ok(Ok(Some(bytes))) = timeout_at(until, response.chunk()).await {
        body.extend_from_slice(&bytes[..bytes.len().min(MAX_ERROR_BYTES - body.len())]);
        if body.len() == MAX_ERROR_BYTES {
            break;
        }
    }
    let reason = status.canonical_reason().unwrap_or_default();
    let mut fault = hints.apply(Fault::from_status(status.as_u16(), reason, &body, !is_page));
    if let Some(id) = request_id {
        fault.detail.push_str(&format!(" (request {id})"));
    }
    fault
}

#[expect(
    clippy::disallowed_methods,
    reason = "a date in `Retry-After` is real time; `Hints` is tested with any time"
)]
fn wall_clock() -> SystemTime {
    SystemTime::now()
}

pub(crate) fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

/// An error with its sources, without the address, which the operator knows.
pub(crate) fn error_chain(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
