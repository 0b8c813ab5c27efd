//! One request to a calendar's server, within limits, and every way in which it can fail.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Method, Request, StatusCode};
use url::{Host, Url};

/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);
const MAX_RETRY_AFTER_SECONDS: f64 = 3_600.0;

/// A client that every request of one calendar goes through.
#[derive(Clone)]
pub(crate) struct HttpClient {
    reading: reqwest::Client,
    /// Takes a new connection for every request: on one that was idle, a request may be lost without being sent, which
    /// would look like a change whose outcome is unknown.
    writing: reqwest::Client,
    /// The configured name, for messages.
    calendar: String,
    timeout: Duration,
    max_bytes: usize,
}

/// Whether a request changes something: then an answer that was lost leaves open whether it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Reads,
    Writes,
}

#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl HttpAnswer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Why an address cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("it is not an http or https URL")]
    NotHttp,
    #[error("it is not encrypted; use https, except for a server on this machine")]
    NotEncrypted,
    #[error("it holds a user name or a password; give them in keys of their own")]
    HasCredentials,
}

/// Checks the address of a server: TLS may be off for this machine alone.
pub fn check_address(address: &str) -> Result<Url, AddressError> {
    let url = Url::parse(address).map_err(|_| AddressError::NotHttp)?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(AddressError::HasCredentials);
    }
    match (url.scheme(), url.host()) {
        ("https", Some(_)) => Ok(url),
        ("http", Some(host)) if is_loopback(&host) => Ok(url),
        ("http", Some(_)) => Err(AddressError::NotEncrypted),
        _ => Err(AddressError::NotHttp),
    }
}

fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

impl HttpClient {
    pub(crate) fn new(calendar: &str, timeout: Duration, max_bytes: usize) -> Result<Self, reqwest::Error> {
        let client = |idle| {
            reqwest::Client::builder()
                .connect_timeout(CONNECT_TIMEOUT.min(timeout))
                .redirect(reqwest::redirect::Policy::none())
                // A proxy of the environment would see what goes to a server on this machine.
                .no_proxy()
                .pool_max_idle_per_host(idle)
                .user_agent(concat!("Quarterdeck/", env!("CARGO_PKG_VERSION")))
                .build()
        };
        let (reading, writing) = (client(2)?, client(0)?);
        Ok(Self { reading, writing, calendar: calendar.to_owned(), timeout, max_bytes })
    }

    pub(crate) fn calendar(&self) -> &str {
        &self.calendar
    }

    pub(crate) fn request(&self, method: Method, url: Url) -> reqwest::RequestBuilder {
        self.reading.request(method, url)
    }

    /// Sends a request and reads its whole answer, whatever its status is.
    pub(crate) async fn send(&self, request: Request, effect: Effect) -> Result<HttpAnswer, CapabilityError> {
        let exchange = async {
            let client = if effect == Effect::Writes { &self.writing } else { &self.reading };
            let response = client.execute(request).await.map_err(|error| self.failed(error, effect))?;
            let (status, headers) = (response.status(), response.headers().clone());
            let body = self.read(response, effect).await?;
            Ok(HttpAnswer { status, headers, body })
        };
        match tokio::time::timeout(self.timeout, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(self.lost(effect, "it did not answer in time")),
        }
    }

    async fn read(
        &self,
        mut response: reqwest::Response,
        effect: Effect,
    ) -> Result<Vec<u8>, CapabilityError> {
        let status = response.status();
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(bytes)) if body.len() + bytes.len() > self.max_bytes => {
                    let message =
                        format!("the server of {} sent more than {} bytes", self.calendar, self.max_bytes);
                    return Err(CapabilityError::new(CapabilityErrorCode::NotAvailable, message));
                }
                Ok(Some(bytes)) => body.extend_from_slice(&bytes),
                Ok(None) => return Ok(body),
                // Whether a write was done is in its status; the rest of the answer is not needed.
                Err(_) if effect == Effect::Writes && status.is_success() => return Ok(body),
                Err(_) => return Err(self.lost(effect, "the connection broke")),
            }
        }
    }

    /// A request that was never sent has changed nothing.
    fn failed(&self, error: reqwest::Error, effect: Effect) -> CapabilityError {
        let error = error.without_url();
        tracing::warn!(calendar = self.calendar, error = %error, "calendar server failed");
        if error.is_connect() || error.is_builder() {
            let message = format!("the server of the calendar {} cannot be reached", self.calendar);
            return CapabilityError::new(CapabilityErrorCode::NotAvailable, message);
        }
        self.lost(effect, "the connection broke")
    }

    fn lost(&self, effect: Effect, how: &str) -> CapabilityError {
        let name = &self.calendar;
        match effect {
            Effect::Reads => {
                let message = format!("the server of the calendar {name} failed: {how}");
                CapabilityError::new(CapabilityErrorCode::Timeout, message)
            }
            Effect::Writes => {
                let message = format!(
                    "the server of the calendar {name} was lost in the middle of the change ({how}); whether it was done \
                     is not known"
                );
                CapabilityError::new(CapabilityErrorCode::OutcomeUnknown, message)
            }
        }
    }

    /// What a status means that the caller has no use for.
    pub(crate) fn refused(&self, answer: &HttpAnswer, effect: Effect) -> CapabilityError {
        let (name, status) = (&self.calendar, answer.status.as_u16());
        tracing::warn!(calendar = %name, status, "calendar server refused a request");
        let error = |code, message: String| CapabilityError {
            code,
            message,
            retry_after_seconds: retry_after(&answer.headers),
        };
        match answer.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => error(
                CapabilityErrorCode::AuthError,
                format!("the server of the calendar {name} refuses the configured credentials"),
            ),
            StatusCode::NOT_FOUND | StatusCode::GONE => {
                error(CapabilityErrorCode::NotFound, format!("the calendar {name} has no such event"))
            }
            StatusCode::PRECONDITION_FAILED | StatusCode::CONFLICT | StatusCode::LOCKED => error(
                CapabilityErrorCode::Conflict,
                format!("the event in the calendar {name} has changed in the meantime"),
            ),
            StatusCode::TOO_MANY_REQUESTS => {
                let limited = format!("the server of the calendar {name} wants fewer requests");
                let seconds = retry_after(&answer.headers).or(Some(1.0));
                CapabilityError {
                    retry_after_seconds: seconds,
                    ..error(CapabilityErrorCode::RateLimit, limited)
                }
            }
            // It says that it did nothing.
            StatusCode::SERVICE_UNAVAILABLE => error(
                CapabilityErrorCode::NotAvailable,
                format!("the server of the calendar {name} is not available at the moment"),
            ),
            status if status.is_server_error() => {
                self.lost(effect, &format!("it answered with status {}", status.as_u16()))
            }
            _ => error(
                CapabilityErrorCode::NotAvailable,
                format!("the server of the calendar {name} answered with status {status}"),
            ),
        }
    }
}

/// The pause that a server asks for, in seconds: a number, or a date.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<f64> {
    parse_retry_after(headers.get(RETRY_AFTER)?.to_str().ok()?.trim(), now())
}

/// Zoom writes its dates like RFC 3339.
fn parse_retry_after(text: &str, now: Timestamp) -> Option<f64> {
    let seconds = match text.parse::<f64>() {
        Ok(seconds) => seconds,
        Err(_) => {
            let at = rfc2822::DateTimeParser::new().parse_timestamp(text);
            let at: Timestamp = at.or_else(|_| text.parse()).ok()?;
            at.duration_since(now).as_secs_f64()
        }
    };
    seconds.is_finite().then(|| seconds.clamp(0.0, MAX_RETRY_AFTER_SECONDS))
}

#[expect(clippy::disallowed_methods, reason = "dates in headers are of the server's clock, not of a call's")]
fn now() -> Timestamp {
    Timestamp::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_read_as_seconds_or_as_a_date_and_is_bounded() {
        let now = "2015-10-21T07:28:00Z".parse().unwrap();
        for (text, after) in [
            ("9", Some(9.0)),
            ("1.5", Some(1.5)),
            ("Wed, 21 Oct 2015 07:28:30 GMT", Some(30.0)),
            ("2015-10-21T07:28:30Z", Some(30.0)),
            ("Wed, 21 Oct 2015 07:00:00 GMT", Some(0.0)),
            ("999999999", Some(MAX_RETRY_AFTER_SECONDS)),
            ("-1", Some(0.0)),
            ("NaN", None),
            ("tomorrow", None),
        ] {
            assert_eq!(parse_retry_after(text, now), after, "{text}");
        }
    }

    #[test]
    fn credentials_travel_unencrypted_on_this_machine_only() {
        for fine in
            ["https://www.example.com/v3/", "http://127.0.0.1:9", "http://[::1]:9", "http://localhost:9"]
        {
            assert!(check_address(fine).is_ok(), "{fine}");
        }
        for bad in ["http://example.com", "http://10.0.0.1", "http://localhost.example.com"] {
            assert_eq!(check_address(bad), Err(AddressError::NotEncrypted), "{bad}");
        }
        assert_eq!(check_address("https://a:b@example.com"), Err(AddressError::HasCredentials));
        assert_eq!(check_address("www.example.com"), Err(AddressError::NotHttp));
    }
}
