//! One request to a speech engine: a slot, the response, and its body within limits.

use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{ChatErrorKind, SpeechError, SpeechErrorKind};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Request, Response};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout_at};

use crate::endpoint::{Endpoint, Settings};
use crate::http::{deadline_after, error_chain, header, open, timed_out};
use crate::{ConfigError, Fault, Limits, retry};

/// What both engines have.
#[derive(Debug)]
pub(super) struct SpeechClient {
    pub(super) endpoint: Arc<Endpoint>,
    slots: Arc<Semaphore>,
    max_requests: usize,
}

impl SpeechClient {
    pub(super) fn new(settings: Settings<'_>, max_requests: usize) -> Result<Self, ConfigError> {
        let max_requests = max_requests.clamp(1, Semaphore::MAX_PERMITS);
        let slots = Arc::new(Semaphore::new(max_requests));
        Ok(Self { endpoint: Endpoint::new(settings)?, slots, max_requests })
    }

    /// A slot for one request, or the refusal of one too many.
    pub(super) fn reserve(&self) -> Result<OwnedSemaphorePermit, SpeechError> {
        self.slots.clone().try_acquire_owned().map_err(|_| {
            let detail = format!("{} requests are under way, which is the limit", self.max_requests);
            self.error_of(SpeechErrorKind::Busy, detail)
        })
    }

    /// Sends a request until an answer comes, as often as the limits say. An answer that breaks off is not asked for again.
    pub(super) async fn send(&self, request: Request, deadline: Instant) -> Result<ResponseBody, Fault> {
        let (mut request, mut attempts) = (request, 0);
        loop {
            let copy = request.try_clone();
            attempts += 1;
            let fault = match open(&self.endpoint, request, deadline).await {
                Ok((response, first_byte)) => return Ok(self.body(response, first_byte, deadline)),
                Err(fault) => fault,
            };
            let Some((again, delay)) = copy.zip(self.retry_delay(&fault, attempts, deadline)) else {
                return Err(fault);
            };
            sleep(delay).await;
            request = again;
        }
    }

    fn retry_delay(&self, fault: &Fault, attempts: u32, deadline: Instant) -> Option<Duration> {
        let delay = retry::retry_delay(fault, attempts, &self.endpoint.limits, retry::jitter())?;
        (deadline_after(delay) < deadline).then_some(delay)
    }

    fn body(&self, response: Response, first_byte: Instant, deadline: Instant) -> ResponseBody {
        let limits = self.endpoint.limits.clone();
        ResponseBody { response, limits, deadline, first_byte: Some(first_byte), received: 0 }
    }

    pub(super) fn error(&self, fault: Fault) -> SpeechError {
        self.error_of(kind_of(&fault), fault.detail)
    }

    pub(super) fn error_of(&self, kind: SpeechErrorKind, detail: impl Into<String>) -> SpeechError {
        let engine = self.endpoint.name.to_string();
        SpeechError { kind, engine, detail: self.endpoint.redact(detail.into()) }
    }
}

fn kind_of(fault: &Fault) -> SpeechErrorKind {
    match fault.kind {
        // A quota does not come back by waiting.
        ChatErrorKind::RateLimited if fault.is_quota_exhausted => SpeechErrorKind::Refused,
        ChatErrorKind::RateLimited => SpeechErrorKind::Busy,
        ChatErrorKind::Unauthorised => SpeechErrorKind::Auth,
        ChatErrorKind::Rejected | ChatErrorKind::TooLong | ChatErrorKind::Refused => SpeechErrorKind::Refused,
        ChatErrorKind::Unreachable | ChatErrorKind::Overloaded | ChatErrorKind::Cut => {
            SpeechErrorKind::Unavailable
        }
        ChatErrorKind::Silent => SpeechErrorKind::TimedOut,
        ChatErrorKind::Garbled => SpeechErrorKind::Malformed,
    }
}

/// The body of a successful response.
pub(super) struct ResponseBody {
    response: Response,
    limits: Limits,
    deadline: Instant,
    /// Until when it must begin; `None` once it has.
    first_byte: Option<Instant>,
    received: usize,
}

impl ResponseBody {
    /// The next chunk, or `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        let (until, waited) = match self.first_byte {
            Some(until) => (until, self.limits.first_byte),
            None => (deadline_after(self.limits.idle).min(self.deadline), self.limits.idle),
        };
        match timeout_at(until, self.response.chunk()).await {
            Err(_) => Err(timed_out(&self.limits, until == self.deadline, waited)),
            Ok(Err(error)) => Err(Fault::cut(format!("the connection broke: {}", error_chain(error)))),
            Ok(Ok(None)) => Ok(None),
            Ok(Ok(Some(bytes))) => {
                self.first_byte = None;
                self.received += bytes.len();
                if self.received > self.limits.response {
                    let detail = format!("the answer is larger than {} bytes", self.limits.response);
                    return Err(Fault::garbled(detail));
                }
                Ok(Some(bytes.to_vec()))
            }
        }
    }

    /// All of it.
    pub(super) async fn read(&mut self) -> Result<Vec<u8>, Fault> {
        let mut body = Vec::new();
        while let Some(bytes) = self.next().await? {
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    }

    /// Its content type, in lower case and shortened for an error.
    pub(super) fn content_type(&self) -> Option<String> {
        let kind = header(&self.response, CONTENT_TYPE.as_str())?;
        Some(kind.chars().take(100).collect::<String>().to_ascii_lowercase())
    }
}
