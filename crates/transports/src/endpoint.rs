//! A provider's address, and the path of every request: send, read, and retry while no event has been emitted.

use std::collections::VecDeque;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use quarterdeck_contracts::telemetry::TraceContext;
use quarterdeck_contracts::{ChatError, ChatErrorKind, ChatEvent, ChatStream};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Request, RequestBuilder, Url, redirect};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::http::{HttpReply, Step, deadline_after};
use crate::reply::Accumulator;
use crate::{ConfigError, Fault, Limits, Secret, retry};

/// What a server that has telemetry of its own joins its spans to ours by. The others ignore it.
const TRACEPARENT: &str = "traceparent";

/// A provider's address with all that a request needs.
pub(crate) struct Endpoint {
    /// `provider/model`.
    pub(crate) name: Arc<str>,
    pub(crate) client: Client,
    pub(crate) limits: Limits,
    url: Url,
    headers: HeaderMap,
    /// To keep it out of error messages; it is sent in `headers`.
    key: Option<Secret>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("name", &self.name)
            .field("url", &self.url.as_str())
            .finish_non_exhaustive()
    }
}

pub(crate) struct Settings<'a> {
    pub(crate) provider: &'static str,
    pub(crate) model: &'a str,
    pub(crate) base_url: &'a str,
    /// What follows the base URL, with its query.
    pub(crate) path: String,
    pub(crate) key: Option<&'a Secret>,
    pub(crate) headers: HeaderMap,
    pub(crate) limits: &'a Limits,
}

impl Endpoint {
    pub(crate) fn new(settings: Settings<'_>) -> Result<Arc<Self>, ConfigError> {
        let Settings { provider, model, base_url, path, key, mut headers, limits } = settings;
        if model.is_empty() || model.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(ConfigError::Model { provider });
        }
        let url = address(provider, base_url, &path)?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut client = Client::builder()
            // A redirect could carry the key to another host.
            .redirect(redirect::Policy::none())
            .connect_timeout(limits.connect)
            .tcp_nodelay(true)
            .tcp_keepalive(Duration::from_secs(30))
            .user_agent(concat!("quarterdeck/", env!("CARGO_PKG_VERSION")));
        if is_this_machine(&url) {
            // A proxy cannot reach what listens on this machine.
            client = client.no_proxy();
        } else if url.scheme() == "http" && key.is_some() {
            tracing::warn!(provider, "the key travels unencrypted");
        }
        let client = client.build().map_err(ConfigError::Client)?;
        let name = format!("{provider}/{model}").into();
        Ok(Arc::new(Self { name, client, limits: limits.clone(), url, headers, key: key.cloned() }))
    }

    /// Sends a request, with a new accumulator for every attempt. All attempts are one span, if there is one.
    pub(crate) fn ask<A, F>(
        self: &Arc<Self>,
        body: &Value,
        span: Option<TraceContext>,
        new_accumulator: F,
    ) -> ChatStream
    where
        A: Accumulator + 'static,
        F: Fn() -> A + Send + 'static,
    {
        let mut request = self.post(body);
        if let Some(span) = span {
            request = request.header(TRACEPARENT, span.to_traceparent());
        }
        let phase = match request.build() {
            Ok(request) => Phase::Send(request),
            Err(error) => {
                Phase::Failed(Fault::new(ChatErrorKind::Rejected, error.without_url().to_string()), None)
            }
        };
        let stream = ReplyStream {
            endpoint: self.clone(),
            new_accumulator,
            phase,
            events: VecDeque::new(),
            has_emitted: false,
            attempts: 0,
            deadline: None,
        };
        Box::pin(stream::unfold(stream, ReplyStream::next))
    }

    pub(crate) fn post(&self, body: &Value) -> RequestBuilder {
        self.client.post(self.url.clone()).headers(self.headers.clone()).body(body.to_string())
    }

    /// A request whose body is not JSON.
    pub(crate) fn post_bytes(&self, content_type: HeaderValue, body: Vec<u8>) -> RequestBuilder {
        let mut headers = self.headers.clone();
        headers.insert(CONTENT_TYPE, content_type);
        self.client.post(self.url.clone()).headers(headers).body(body)
    }

    /// Whether it listens on this machine.
    pub(crate) fn is_local(&self) -> bool {
        is_this_machine(&self.url)
    }

    /// Removes the key from a text.
    pub(crate) fn redact(&self, text: String) -> String {
        match &self.key {
            Some(key) => key.redact(text),
            None => text,
        }
    }

    fn error(&self, fault: Fault) -> ChatError {
        let mut error = fault.into_error(&self.name);
        error.detail = self.redact(error.detail);
        error
    }
}

/// A request with its retries. The caller holds it as a stream, so dropping that ends everything at once: the connection,
/// the body, and the delay before a retry.
struct ReplyStream<A, F> {
    endpoint: Arc<Endpoint>,
    new_accumulator: F,
    phase: Phase<A>,
    /// Events that were not emitted yet.
    events: VecDeque<ChatEvent>,
    has_emitted: bool,
    attempts: u32,
    /// Set when first polled.
    deadline: Option<Instant>,
}

enum Phase<A> {
    Send(Request),
    Read(Box<HttpReply<A>>, Option<Request>),
    /// Reached only when all events before it have been emitted.
    Failed(Fault, Option<Request>),
    Over,
}

impl<A: Accumulator, F: Fn() -> A> ReplyStream<A, F> {
    async fn next(mut self) -> Option<(Result<ChatEvent, ChatError>, Self)> {
        let limits = &self.endpoint.limits;
        let deadline = *self.deadline.get_or_insert_with(|| deadline_after(limits.total));
        loop {
            if let Some(event) = self.events.pop_front() {
                self.has_emitted = true;
                return Some((Ok(event), self));
            }
            self.phase = match std::mem::replace(&mut self.phase, Phase::Over) {
                Phase::Send(request) => {
                    self.attempts += 1;
                    let copy = request.try_clone();
                    match HttpReply::open(&self.endpoint, request, (self.new_accumulator)(), deadline).await {
                        Ok(reply) => Phase::Read(Box::new(reply), copy),
                        Err(fault) => Phase::Failed(fault, copy),
                    }
                }
                Phase::Read(mut reply, copy) => match reply.step(&mut self.events).await {
                    Ok(Step::More) => Phase::Read(reply, copy),
                    Ok(Step::End) => match reply.finish(&mut self.events) {
                        Ok(()) => Phase::Over,
                        Err(fault) => Phase::Failed(fault, copy),
                    },
                    Err(fault) => Phase::Failed(fault, copy),
                },
                Phase::Failed(fault, copy) => match copy.zip(self.retry_delay(&fault, deadline)) {
                    Some((request, retry_delay)) => {
                        let (model, kind) = (&*self.endpoint.name, fault.kind);
                        tracing::debug!(
                            model,
                            ?kind,
                            attempts = self.attempts,
                            ?retry_delay,
                            "retrying request"
                        );
                        sleep(retry_delay).await;
                        Phase::Send(request)
                    }
                    None => return Some((Err(self.endpoint.error(fault)), self)),
                },
                Phase::Over => return None,
            };
        }
    }

    /// The delay before another attempt; `None` once an event was emitted, so that no text is sent twice.
    fn retry_delay(&self, fault: &Fault, deadline: Instant) -> Option<Duration> {
        if self.has_emitted {
            return None;
        }
        let retry_delay = retry::retry_delay(fault, self.attempts, &self.endpoint.limits, retry::jitter())?;
        (deadline_after(retry_delay) < deadline).then_some(retry_delay)
    }
}

/// The whole address. What it must not have would end up in logs, or be lost.
pub(crate) fn address(provider: &'static str, base_url: &str, path: &str) -> Result<Url, ConfigError> {
    let wrong = |reason: &str| ConfigError::BaseUrl { provider, reason: reason.to_owned() };
    let base = Url::parse(base_url.trim()).map_err(|error| wrong(&format!("is malformed: {error}")))?;
    if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
        return Err(wrong("must begin with http:// or https:// and a host"));
    }
    if !base.username().is_empty() || base.password().is_some() {
        return Err(wrong("must not hold a name or password: set the key instead"));
    }
    if base.query().is_some() || base.fragment().is_some() {
        return Err(wrong("must not have a query or a fragment"));
    }
    let whole = format!("{}/{path}", base.as_str().trim_end_matches('/'));
    Url::parse(&whole).map_err(|error| wrong(&format!("does not make an address: {error}")))
}

/// Whether an address is on this machine.
pub fn is_loopback_url(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| is_this_machine(&url))
}

pub(crate) fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A header whose value must not show up when a request is printed.
pub(crate) fn secret_header(provider: &'static str, value: &str) -> Result<HeaderValue, ConfigError> {
    let mut value = header(provider, "key", value)?;
    value.set_sensitive(true);
    Ok(value)
}

pub(crate) fn header(
    provider: &'static str,
    what: &'static str,
    value: &str,
) -> Result<HeaderValue, ConfigError> {
    HeaderValue::from_str(value).map_err(|_| ConfigError::Header { provider, what })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_base_url_and_a_path() {
        let address = |base: &str| address("x", base, "v1/messages").map(String::from);
        assert_eq!(address("https://a.example").unwrap(), "https://a.example/v1/messages");
        assert_eq!(address(" http://127.0.0.1:8080/p// ").unwrap(), "http://127.0.0.1:8080/p/v1/messages");
        for bad in [
            "a.example",
            "ftp://a.example",
            "http://",
            "",
            "https://name:pass@a.example",
            "https://a.example?key=1",
            "https://a.example#x",
        ] {
            assert!(matches!(address(bad), Err(ConfigError::BaseUrl { .. })), "{bad}");
        }
    }

    #[test]
    fn this_machine_is_known_by_name_and_number() {
        let local = |text: &str| is_this_machine(&Url::parse(text).unwrap());
        assert!(local("http://localhost:11434/v1") && local("http://127.0.0.1") && local("http://[::1]:80"));
        assert!(!local("http://10.0.0.1") && !local("https://localhost.example"));
    }
}
