//! Access tokens: requested once, used until they expire, replaced when a service refuses them.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};
use reqwest::{Method, RequestBuilder, StatusCode, Url};
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::credential::Credential;
use crate::fault::{fault, rate_limited};
use crate::http::{Effect, HttpAnswer, HttpClient, retry_after};

/// A token is replaced this long before it expires, so that none expires on its way.
const EXPIRY_MARGIN: Duration = Duration::from_secs(60);
/// RFC 6749 only recommends that servers name a lifetime.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(300);
const DEFAULT_RETRY_SECONDS: f64 = 10.0;

/// Reads the time of day.
pub type WallClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// What is sent to the token endpoint.
pub(crate) struct TokenRequest {
    pub(crate) form: Vec<(&'static str, String)>,
    /// User and password of the Authorization header, where the service wants the client's credentials there.
    pub(crate) basic: Option<(String, Credential)>,
}

/// A way to be granted tokens.
pub(crate) trait Grant: Send + Sync {
    /// Builds a new request; an assertion in it holds the time of day.
    fn request(&self, now: SystemTime) -> Result<TokenRequest, CapabilityError>;
}

pub(crate) struct TokenSource {
    service: &'static str,
    http: HttpClient,
    url: Url,
    grant: Box<dyn Grant>,
    clock: WallClock,
    /// Held while a token is requested, so that calls which need one at the same time share it.
    cached: Mutex<Option<CachedToken>>,
}

struct CachedToken {
    token: Credential,
    replace_at: Instant,
}

impl TokenSource {
    pub(crate) fn new(
        service: &'static str,
        http: HttpClient,
        url: Url,
        grant: Box<dyn Grant>,
        clock: WallClock,
    ) -> Self {
        Self { service, http, url, grant, clock, cached: Mutex::new(None) }
    }

    pub(crate) async fn token(&self) -> Result<Credential, CapabilityError> {
        let mut cached = self.cached.lock().await;
        if let Some(cached) = &*cached
            && Instant::now() < cached.replace_at
        {
            return Ok(cached.token.clone());
        }
        let fresh = self.request().await?;
        let token = fresh.token.clone();
        *cached = Some(fresh);
        Ok(token)
    }

    /// Forgets a token that the service refused, unless another has taken its place.
    pub(crate) async fn forget(&self, refused: &Credential) {
        let mut cached = self.cached.lock().await;
        if cached.as_ref().is_some_and(|cached| cached.token == *refused) {
            *cached = None;
        }
    }

    async fn request(&self) -> Result<CachedToken, CapabilityError> {
        let TokenRequest { form, basic } = self.grant.request((self.clock)())?;
        let mut request = self.http.request(Method::POST, self.url.clone()).form(&form);
        if let Some((user, password)) = basic {
            request = request.basic_auth(user, Some(password.expose()));
        }
        let asked_at = Instant::now();
        let reply = match exchange(&self.http, request, Effect::Reads).await {
            Ok(reply) => reply,
            Err(NoReply::NoToken(error)) => return Err(error),
            Err(NoReply::NotSent(why) | NoReply::Lost(why)) => {
                let message = format!("no access token could be requested: {why}");
                return Err(self.fault(CapabilityErrorCode::NotAvailable, message));
            }
        };
        if reply.status != StatusCode::OK {
            return Err(self.refusal(&reply));
        }
        let Ok(answer) = serde_json::from_slice::<TokenReply>(&reply.body) else {
            return Err(self.fault(
                CapabilityErrorCode::NotAvailable,
                "the answer to the request for a token is not one",
            ));
        };
        let lifetime = answer.expires_in.map_or(DEFAULT_LIFETIME, Duration::from_secs);
        // One that lives for less than two minutes is used for half of its life.
        let margin = EXPIRY_MARGIN.min(lifetime / 2);
        Ok(CachedToken {
            token: Credential::new(answer.access_token),
            replace_at: asked_at + (lifetime - margin).min(Duration::from_secs(24 * 60 * 60)),
        })
    }

    fn refusal(&self, reply: &HttpAnswer) -> CapabilityError {
        let error = error_code(&reply.body);
        match reply.status.as_u16() {
            429 => rate_limited(self.service, retry_after(&reply.headers).unwrap_or(DEFAULT_RETRY_SECONDS)),
            400..=499 => {
                let message = format!(
                    "the credentials were refused ({error}); the operator must check them, or authorise access again"
                );
                self.fault(CapabilityErrorCode::AuthError, message)
            }
            status => self.fault(
                CapabilityErrorCode::NotAvailable,
                format!("no access token was granted (HTTP {status})"),
            ),
        }
    }

    fn fault(&self, code: CapabilityErrorCode, message: impl fmt::Display) -> CapabilityError {
        fault(self.service, code, message)
    }
}

/// Sends requests with a token of its source.
pub(crate) struct AuthorizedClient {
    http: HttpClient,
    tokens: TokenSource,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum NoReply {
    /// There is no token, so nothing was sent.
    NoToken(CapabilityError),
    NotSent(String),
    /// The service may have acted.
    Lost(String),
}

impl AuthorizedClient {
    pub(crate) fn new(http: HttpClient, tokens: TokenSource) -> Self {
        Self { http, tokens }
    }

    /// Sends a request; with a new token once more if the first was refused, as one is that was revoked or has expired.
    pub(crate) async fn send(
        &self,
        effect: Effect,
        build: impl Fn(&HttpClient) -> RequestBuilder,
    ) -> Result<HttpAnswer, NoReply> {
        let token = self.tokens.token().await.map_err(NoReply::NoToken)?;
        let reply = exchange(&self.http, build(&self.http).bearer_auth(token.expose()), effect).await?;
        if reply.status != StatusCode::UNAUTHORIZED {
            return Ok(reply);
        }
        self.tokens.forget(&token).await;
        let token = self.tokens.token().await.map_err(NoReply::NoToken)?;
        exchange(&self.http, build(&self.http).bearer_auth(token.expose()), effect).await
    }
}

async fn exchange(http: &HttpClient, request: RequestBuilder, effect: Effect) -> Result<HttpAnswer, NoReply> {
    let not_sent = || NoReply::NotSent("no connection".into());
    let request = request.build().map_err(|_| not_sent())?;
    http.send(request, effect).await.map_err(|error| match error.code {
        CapabilityErrorCode::OutcomeUnknown | CapabilityErrorCode::Timeout => {
            NoReply::Lost("the connection broke, or the answer took too long".into())
        }
        _ => not_sent(),
    })
}

/// Adds segments to an address, each escaped as a whole.
pub(crate) fn below<'a>(base: &Url, segments: impl IntoIterator<Item = &'a str>) -> Url {
    let mut url = base.clone();
    url.set_query(None);
    url.set_fragment(None);
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    url
}

impl NoReply {
    /// For requests that change nothing, or that can be repeated without harm.
    pub(crate) fn into_fault(self, service: &str) -> CapabilityError {
        match self {
            Self::NoToken(error) => error,
            Self::NotSent(why) | Self::Lost(why) => {
                fault(service, CapabilityErrorCode::NotAvailable, format!("{why}; try again"))
            }
        }
    }
}

#[derive(Deserialize)]
struct TokenReply {
    access_token: String,
    expires_in: Option<u64>,
}

/// The error code of RFC 6749 (`invalid_grant`). Descriptions are not repeated: they quote what was sent.
fn error_code(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Refusal {
        error: String,
    }
    let error = serde_json::from_slice::<Refusal>(body).map(|refusal| refusal.error).unwrap_or_default();
    let is_code = |text: &str| !text.is_empty() && text.len() <= 60 && text.bytes().all(is_code_byte);
    if is_code(&error) { error } else { "no reason was given".into() }
}

fn is_code_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_cannot_leave_its_place() {
        for base in ["https://www.example.com/v3", "https://www.example.com/v3/"] {
            let url = below(&base.parse().unwrap(), ["calendars", "a/../b@group?x#y", "events"]);
            assert_eq!(url.as_str(), "https://www.example.com/v3/calendars/a%2F..%2Fb@group%3Fx%23y/events");
        }
    }

    #[test]
    fn only_the_code_of_a_refusal_is_repeated() {
        assert_eq!(
            error_code(br#"{"error":"invalid_grant","error_description":"1//secret"}"#),
            "invalid_grant"
        );
        for other in [&br#"{"error":"Token 1//secret"}"#[..], b"<html>", b"{}", br#"{"error":{"code":1}}"#] {
            assert_eq!(error_code(other), "no reason was given");
        }
    }
}
