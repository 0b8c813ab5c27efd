//! One try: the request, what comes back, and every way in which it can stop coming.

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

/// How much of an error's body is read, in bytes.
const MOST_ERROR: usize = 64 << 10;
/// How long a stream is still read when the reply has said why it ends. Figures follow at once or never.
const LINGER: Duration = Duration::from_secs(3);

/// An answer that is being read.
pub(crate) struct Reading<A> {
    response: Response,
    reader: Reader<A>,
    limits: Limits,
    deadline: Instant,
    /// When the first byte must be there.
    first_byte: Option<Instant>,
    received: usize,
}

/// Whether there is more to read.
pub(crate) enum Step {
    More,
    End,
}

impl<A: Accumulator> Reading<A> {
    /// Sends the request and waits until an answer begins that can be read.
    pub(crate) async fn open(
        endpoint: &Endpoint,
        request: Request,
        accumulator: A,
        deadline: Instant,
    ) -> Result<Self, Fault> {
        let limits = endpoint.limits.clone();
        let first_byte = after(limits.first_byte).min(deadline);
        let response = match timeout_at(first_byte, endpoint.client.execute(request)).await {
            Err(_) => return Err(silent(&limits, first_byte == deadline, limits.first_byte)),
            Ok(Err(error)) => return Err(unsent(error)),
            Ok(Ok(response)) => response,
        };
        if !response.status().is_success() {
            return Err(refused(response, after(limits.idle).min(deadline)).await);
        }
        let reader = Reader::new(accumulator, limits.event);
        Ok(Self { response, reader, limits, deadline, first_byte: Some(first_byte), received: 0 })
    }

    /// Waits for the next piece and takes it.
    pub(crate) async fn step(&mut self, said: &mut VecDeque<ChatEvent>) -> Result<Step, Fault> {
        let may_end = self.reader.progress() != Progress::Under;
        let patience = if may_end { self.limits.idle.min(LINGER) } else { self.limits.idle };
        let (until, waited) = match self.first_byte {
            Some(until) => (until, self.limits.first_byte),
            None => (after(patience).min(self.deadline), patience),
        };
        match timeout_at(until, self.response.chunk()).await {
            Err(_) if may_end => Ok(Step::End),
            Err(_) => Err(silent(&self.limits, until == self.deadline, waited)),
            Ok(Err(_)) if may_end => Ok(Step::End),
            Ok(Err(error)) => Err(Fault::cut(format!("the connection broke: {}", causes(error)))),
            Ok(Ok(None)) => self.reader.end(said).map(|()| Step::End),
            Ok(Ok(Some(bytes))) => self.take(&bytes, said),
        }
    }

    /// Ends the reply.
    pub(crate) fn finish(self, said: &mut VecDeque<ChatEvent>) -> Result<(), Fault> {
        let reply = self.reader.finish().map_err(|mut fault| {
            let kind = header(&self.response, CONTENT_TYPE.as_str());
            if let Some(kind) = kind.filter(|kind| !kind.starts_with("text/event-stream")) {
                let kind: String = kind.chars().take(100).collect();
                fault.detail.push_str(&format!(" (what came calls itself {kind}: is the base URL right?)"));
            }
            fault
        })?;
        said.push_back(ChatEvent::Done(reply));
        drain(self.response);
        Ok(())
    }

    fn take(&mut self, bytes: &[u8], said: &mut VecDeque<ChatEvent>) -> Result<Step, Fault> {
        self.first_byte = None;
        self.received += bytes.len();
        if self.received > self.limits.response {
            return Err(Fault::garbled(format!("the answer is larger than {} bytes", self.limits.response)));
        }
        Ok(if self.reader.feed(bytes, said)? == Progress::Over { Step::End } else { Step::More })
    }
}

/// Reads the little that follows a complete reply, so that the connection can be used for the next one. Nobody waits.
fn drain(mut response: Response) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    runtime.spawn(timeout(Duration::from_secs(1), async move {
        let mut left = MOST_ERROR;
        while let Ok(Some(bytes)) = response.chunk().await {
            left = left.saturating_sub(bytes.len());
            if left == 0 {
                break;
            }
        }
    }));
}

/// A moment from now. Patience without end is a year: a clock cannot count further than it can.
pub(crate) fn after(patience: Duration) -> Instant {
    Instant::now() + patience.min(Duration::from_secs(365 * 24 * 60 * 60))
}

/// Not worth another try: whoever asked has waited long enough.
fn silent(limits: &Limits, at_the_end: bool, waited: Duration) -> Fault {
    let detail = match at_the_end {
        true => format!("the answer was not complete after {:?}", limits.whole),
        false => format!("nothing came for {waited:?}"),
    };
    Fault::new(ChatErrorKind::Silent, detail)
}

/// A request that got no answer.
fn unsent(error: reqwest::Error) -> Fault {
    let opening =
        if error.is_connect() { "no connection" } else { "the connection broke before an answer came" };
    Fault::passing(ChatErrorKind::Unreachable, format!("{opening}: {}", causes(error)))
}

/// An answer with a status that says that it is none.
async fn refused(mut response: Response, until: Instant) -> Fault {
    let status = response.status();
    if status.is_redirection() {
        let detail = format!(
            "HTTP {} (a redirect, which is not followed: set the base URL to where it leads)",
            status.as_u16()
        );
        return Fault::new(ChatErrorKind::Rejected, detail);
    }
    let hints = Hints::read(|name| header(&response, name), SystemTime::now());
    let is_page = header(&response, CONTENT_TYPE.as_str()).is_some_and(|kind| kind.contains("html"));
    let request_id = ["request-id", "x-request-id"].iter().find_map(|name| header(&response, name));
    let request_id: Option<String> = request_id.map(|id| id.chars().take(100).collect());
    let mut body = Vec::new();
    // What does not come in time, or not whole, is not needed: the status says enough.
    while let Ok(Ok(Some(bytes))) = timeout_at(until, response.chunk()).await {
        body.extend_from_slice(&bytes[..bytes.len().min(MOST_ERROR - body.len())]);
        if body.len() == MOST_ERROR {
            break;
        }
    }
    let reason = status.canonical_reason().unwrap_or_default();
    let mut fault = hints.apply(Fault::answered(status.as_u16(), reason, &body, !is_page));
    if let Some(id) = request_id {
        fault.detail.push_str(&format!(" (request {id})"));
    }
    fault
}

fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

/// What an error says and why, without the address, which the operator knows.
fn causes(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
