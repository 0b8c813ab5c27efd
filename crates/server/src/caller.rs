//! The caller of a request, as the guard has identified it.

use std::net::SocketAddr;

use axum::http::{HeaderMap, HeaderValue, header};
use quarterdeck_agents::Situation;
use quarterdeck_agents::text::User;
use quarterdeck_runtime::{Client, RequestedVersion};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::app::{App, Settings};
use crate::credential;
use crate::error::ApiError;
use crate::forwarded::Source;
use crate::identity::{BearerError, COOKIE, Identity};

const FORWARDED_FOR: &str = "x-forwarded-for";
/// Names the version of the tools for a new session.
pub(crate) const VERSION_HEADER: &str = "x-quarterdeck-version";
const MAX_VERSION_BYTES: usize = 100;
/// Other headers that proxies add.
const PROXY_HEADERS: [&str; 3] = ["forwarded", "via", "x-real-ip"];

/// The peer of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) client: Client,
    pub(crate) is_operator: bool,
    /// Whether a token, an API key or the operators' token was verified. A cookie does not count.
    pub(crate) is_verified: bool,
    pub(crate) source: Source,
    /// The cookie for a new client.
    pub(crate) set_cookie: Option<HeaderValue>,
}

/// The source of a request, read through trusted proxies.
pub(crate) fn source(app: &App, peer: SocketAddr, headers: &HeaderMap) -> Source {
    let lines = headers.get_all(FORWARDED_FOR).iter().map(HeaderValue::as_bytes);
    let source = Source::find(peer.ip(), lines, &app.admission.proxies);
    // An untrusted proxy still shows that the client is another machine.
    let is_relayed = PROXY_HEADERS.iter().any(|name| headers.contains_key(*name));
    Source { is_direct: source.is_direct && !is_relayed, ..source }
}

impl Caller {
    pub(crate) fn identify(
        app: &App,
        peer: SocketAddr,
        source: Source,
        headers: &HeaderMap,
    ) -> Result<Self, ApiError> {
        let settings = &app.settings;
        let bearer = credential::bearer(headers)?;
        // A proxy on this machine forwards other machines' requests.
        let is_this_machine =
            source.is_direct && source.address.is_loopback() && settings.is_loopback && !settings.has_proxy();
        let has_admin_token = match (&settings.admin_token, bearer) {
            (Some(admin), Some(token)) => is_same_secret(admin, token),
            _ => false,
        };
        // Without an admin token, this machine is the operators'.
        let is_operator = has_admin_token || (settings.admin_token.is_none() && is_this_machine);
        let by_bearer = match bearer.filter(|_| !has_admin_token) {
            Some(token) => by_bearer(app, token)?.map(|client| with_requested_version(client, headers)),
            None => None,
        };
        let is_verified = has_admin_token || by_bearer.is_some();
        let by_cookie = || cookie(headers).and_then(|cookie| app.identity.by_cookie(cookie));
        let local_program = || bearer.filter(|_| is_this_machine).map(|key| app.identity.local_program(key));
        let known = by_bearer.or_else(by_cookie).or_else(local_program);
        let (client, set_cookie) = match known {
            Some(client) => (client, None),
            None => {
                let Some((client, cookie)) = app.identity.new_client() else {
                    return Err(ApiError::internal("client id not generated", &"no random numbers"));
                };
                let is_encrypted = app.admission.proxies.contains(peer.ip()) && is_forwarded_https(headers);
                let cookie = set_cookie(&cookie, is_encrypted, settings);
                (client, HeaderValue::from_str(&cookie).ok())
            }
        };
        Ok(Self { client, is_operator, is_verified, source, set_cookie })
    }

    pub(crate) fn user(&self, situation: Situation) -> User {
        User { client: self.client.clone(), situation }
    }
}

/// The version of the tools that the request of an API key names. Whether that key may is decided by the rollout.
fn with_requested_version(client: Client, headers: &HeaderMap) -> Client {
    let version = headers.get(VERSION_HEADER).and_then(|version| version.to_str().ok()).map(str::trim);
    let version = version.filter(|version| (1..=MAX_VERSION_BYTES).contains(&version.len()));
    let requested = Identity::key_name(&client).zip(version);
    let requested =
        requested.map(|(key, version)| RequestedVersion { key: key.to_owned(), version: version.to_owned() });
    Client { requested_version: requested, ..client }
}

/// The client of a token or an API key. Where none is configured, any key is accepted and ignored: chat programs insist
/// on sending one.
fn by_bearer(app: &App, token: &str) -> Result<Option<Client>, ApiError> {
    match app.identity.by_bearer(token) {
        Ok(client) => Ok(Some(client)),
        Err(BearerError::Invalid) => Err(credential::invalid()),
        Err(BearerError::NotConfigured) if credential::is_b64token(token) => Ok(None),
        Err(BearerError::NotConfigured) => Err(credential::malformed()),
    }
}

fn is_forwarded_https(headers: &HeaderMap) -> bool {
    let proto = headers.get_all("x-forwarded-proto").iter().next_back();
    let proto = proto.and_then(|proto| proto.to_str().ok());
    proto.and_then(|proto| proto.rsplit(',').next()).is_some_and(|last| last.trim() == "https")
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(';'))
        .find_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='))
}

fn set_cookie(cookie: &str, is_encrypted: bool, settings: &Settings) -> String {
    let is_secure = settings.secure_cookie.unwrap_or(is_encrypted);
    // A page on another origin needs a cross-site cookie, which must be `Secure`.
    let same_site = if is_secure && !settings.origins.is_empty() { "None" } else { "Lax" };
    let secure = if is_secure { "; Secure" } else { "" };
    format!("{COOKIE}={cookie}; Path=/; Max-Age=31536000; HttpOnly; SameSite={same_site}{secure}")
}

/// Compares digests in constant time, so that neither content nor length leaks.
fn is_same_secret(one: &str, other: &str) -> bool {
    Sha256::digest(one).ct_eq(&Sha256::digest(other)).into()
}

/// The user's time zone and language, from the body or the headers.
pub(crate) fn situation(headers: &HeaderMap, body: Option<&serde_json::Value>) -> Situation {
    let field = |name: &str| body.and_then(|body| body[name].as_str()).map(str::to_owned);
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let language = header("accept-language").and_then(|list| list.split([',', ';']).next());
    let language = language.map(str::trim).filter(|language| !language.is_empty() && *language != "*");
    Situation {
        time_zone: field("timeZone").or_else(|| header("x-time-zone").map(str::to_owned)),
        locale: field("locale").or_else(|| language.map(str::to_owned)),
    }
}
