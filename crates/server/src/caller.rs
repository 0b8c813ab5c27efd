//! The caller of a request, as the guard has identified it.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, header};
use quarterdeck_agents::Situation;
use quarterdeck_agents::text::{Refusal, User};
use quarterdeck_contracts::telemetry::TraceContext;
use quarterdeck_runtime::{Block, Client, RequestedVersion, SessionError, find_address_block};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::app::{App, Settings};
use crate::credential;
use crate::error::ApiError;
use crate::forwarded::Source;
use crate::identity::{BearerError, COOKIE, Identity};
use crate::network::AddressOwner;
use crate::origin::Origin;
use crate::session_token::{self, SessionToken};

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
    /// Whether it is a program or our own page in a browser on this machine, which no other machine can reach.
    pub(crate) is_this_machine: bool,
    /// Whether a token, an API key or the operators' token was verified. A cookie does not count.
    pub(crate) is_verified: bool,
    pub(crate) source: Source,
    /// Whether another node has passed the request on. It has counted it.
    pub(crate) is_forwarded: bool,
    /// The page that asks, if it is one.
    pub(crate) origin: Origin,
    pub(crate) credential: Credential,
    /// The cookie for a new client.
    pub(crate) set_cookie: Option<HeaderValue>,
    /// The block of its address, which holds for a new client.
    pub(crate) address_block: Option<Box<Block>>,
}

/// By what a caller was identified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Credential {
    /// A verified token, or an API key.
    Bearer,
    /// A session token, with the conversation that it names.
    SessionToken(Option<String>),
    Cookie,
    /// The unconfigured key of a program on this machine.
    ProgramKey,
    /// Nothing: it is a new client.
    None,
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
        origin: &Origin,
        headers: &HeaderMap,
    ) -> Result<Self, ApiError> {
        let settings = &app.settings;
        let bearer = credential::bearer(headers)?;
        let is_own = *origin == Origin::Own;
        let is_this_machine = is_own && is_this_machine(source, settings);
        let has_admin_token = match (&settings.admin_token, bearer) {
            (Some(admin), Some(token)) => is_same_secret(admin, token),
            _ => false,
        };
        // Without an admin token, this machine is the operators'.
        let is_operator = is_own && (has_admin_token || (settings.admin_token.is_none() && is_this_machine));
        let by_bearer = match bearer.filter(|_| !has_admin_token) {
            Some(token) => by_bearer(app, token)?.map(|client| with_requested_version(client, headers)),
            None => None,
        };
        let is_verified = has_admin_token || by_bearer.is_some();
        let by_token = by_session_token(app, origin, headers)?;
        let by_cookie = || {
            let cookie = cookie(headers).filter(|_| origin.has_cookies())?;
            Some((app.identity.by_cookie(cookie)?, Credential::Cookie))
        };
        let by_program = || {
            let key = bearer.filter(|_| is_this_machine)?;
            Some((app.identity.local_program(key), Credential::ProgramKey))
        };
        let known = by_bearer.map(|client| (client, Credential::Bearer));
        let known = known.or(by_token).or_else(by_cookie).or_else(by_program);
        let (client, credential, set_cookie) = match known {
            Some((client, credential)) => (client, credential, None),
            None => {
                let (client, cookie) = new_client(app, peer, headers)?;
                (client, Credential::None, cookie.filter(|_| origin.has_cookies()))
            }
        };
        let is_anonymous =
            matches!(credential, Credential::SessionToken(_) | Credential::Cookie | Credential::None);
        // This machine's own requests are not held to their address: all its users and tests share one.
        let address =
            (is_anonymous && !is_this_machine).then(|| AddressOwner::of(source.address).to_string());
        Ok(Self {
            client: Client { address, span: trace_parent(app, headers), ..client },
            is_operator,
            is_this_machine,
            is_verified,
            source,
            is_forwarded: false,
            origin: origin.clone(),
            credential,
            set_cookie,
            address_block: None,
        })
    }

    /// Looks up whether the address of a new client is blocked. Such a client is given no cookie: with one, it would not be
    /// new any more.
    pub(crate) async fn find_address_block(&mut self, app: &App) -> Result<(), ApiError> {
        let Some(address) = self.client.address.as_deref().filter(|_| self.is_new()) else { return Ok(()) };
        let now_ms = app.orchestrator.now_ms();
        let found = find_address_block(&**app.orchestrator.store(), address, now_ms).await;
        let found = found.map_err(|error| ApiError::store("block lookup failed", &error))?;
        if found.is_some() {
            self.set_cookie = None;
        }
        self.address_block = found.map(Box::new);
        Ok(())
    }

    pub(crate) fn refuse_blocked_address(&self) -> Result<(), ApiError> {
        match &self.address_block {
            Some(block) => Err(Refusal::Session(SessionError::Blocked(block.clone())).into()),
            None => Ok(()),
        }
    }

    /// Whether it came with nothing that identifies it.
    fn is_new(&self) -> bool {
        self.credential == Credential::None
    }

    /// What its messages are counted under. A new client has none yet, and could be another one each time, so its address
    /// counts.
    pub(crate) fn message_key(&self) -> String {
        match &self.client.address {
            Some(address) if self.is_new() => format!("address {address}"),
            _ => self.client.id.clone(),
        }
    }

    /// Issues session tokens to the caller; `None` where it has another credential to come back with. A page of another
    /// origin always gets one: the browser may drop its cookie.
    pub(crate) fn session_tokens(&self, app: &Arc<App>) -> Option<SessionTokens> {
        let needs_token = match self.credential {
            Credential::Bearer | Credential::ProgramKey => false,
            Credential::Cookie => self.origin != Origin::Own,
            Credential::SessionToken(_) | Credential::None => true,
        };
        let (app, client, origin) = (app.clone(), self.client.id.clone(), self.origin.binding());
        needs_token.then_some(SessionTokens { app, client, origin })
    }

    pub(crate) fn user(&self, situation: Situation) -> User {
        User { client: self.client.clone(), situation }
    }
}

/// The span that the client says its request is a part of.
fn trace_parent(app: &App, headers: &HeaderMap) -> Option<TraceContext> {
    let header = headers.get("traceparent").filter(|_| app.orchestrator.tracer().is_on())?;
    TraceContext::parse(header.to_str().ok()?)
}

/// A proxy on this machine forwards other machines' requests. A page on this machine is not its operator, which the caller
/// checks.
fn is_this_machine(source: Source, settings: &Settings) -> bool {
    source.is_direct && source.address.is_loopback() && settings.is_loopback && !settings.has_proxy()
}

/// A new client and the cookie that it is to come back with.
fn new_client(
    app: &App,
    peer: SocketAddr,
    headers: &HeaderMap,
) -> Result<(Client, Option<HeaderValue>), ApiError> {
    let Some((client, cookie)) = app.identity.new_client() else {
        return Err(ApiError::internal("client id not generated", &"no random numbers"));
    };
    let is_encrypted = is_encrypted(app, peer, headers);
    let cookie = set_cookie(&cookie, is_encrypted, &app.settings);
    Ok((client, HeaderValue::from_str(&cookie).ok()))
}

/// Issues session tokens to one client for one origin.
pub(crate) struct SessionTokens {
    app: Arc<App>,
    client: String,
    origin: String,
}

impl SessionTokens {
    /// A new token, given in a conversation or before there is one.
    pub(crate) fn issue(&self, session: Option<&str>) -> String {
        let issued_ms = self.app.orchestrator.now_ms();
        let token =
            SessionToken { client: self.client.clone(), session: session.map(str::to_owned), issued_ms };
        token.sign(&self.app.identity, &self.origin)
    }
}

fn by_session_token(
    app: &App,
    origin: &Origin,
    headers: &HeaderMap,
) -> Result<Option<(Client, Credential)>, ApiError> {
    let now_ms = app.orchestrator.now_ms();
    let token = session_token::of_request(headers, &app.identity, &origin.binding(), now_ms)?;
    Ok(token.map(|token| (Client::anonymous(token.client), Credential::SessionToken(token.session))))
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

/// Whether the client's own connection is encrypted, as a trusted proxy says.
pub(crate) fn is_encrypted(app: &App, peer: SocketAddr, headers: &HeaderMap) -> bool {
    app.admission.proxies.contains(peer.ip()) && is_forwarded_https(headers)
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
