//! Who makes a request, as the guard has established it.

use std::net::SocketAddr;

use axum::http::{HeaderMap, HeaderValue, header};
use quarterdeck_agents::Situation;
use quarterdeck_agents::text::User;
use quarterdeck_runtime::Client;

use crate::app::{App, Settings};
use crate::credential;
use crate::error::ApiError;
use crate::forwarded::Source;
use crate::identity::{COOKIE, NotProved};

const FORWARDED_FOR: &str = "x-forwarded-for";
/// Headers that proxies add beside that one, or instead of it.
const SIGNS_OF_A_PROXY: [&str; 3] = ["forwarded", "via", "x-real-ip"];

/// Where a connection comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// Who makes a request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) client: Client,
    /// Whether they may see what is the operators'.
    pub(crate) is_operator: bool,
    /// Whether a verified token, an API key or the operators' token says who they are. A cookie does not.
    pub(crate) is_proved: bool,
    pub(crate) source: Source,
    /// The cookie for somebody new.
    pub(crate) set_cookie: Option<HeaderValue>,
}

/// Where a request comes from, as far as trusted proxies tell.
pub(crate) fn source(app: &App, peer: SocketAddr, headers: &HeaderMap) -> Source {
    let lines = headers.get_all(FORWARDED_FOR).iter().map(HeaderValue::as_bytes);
    let source = Source::find(peer.ip(), lines, &app.proxies);
    // A proxy that is not trusted to say who asks still says that another client does.
    let is_relayed = SIGNS_OF_A_PROXY.iter().any(|name| headers.contains_key(*name));
    Source { is_direct: source.is_direct && !is_relayed, ..source }
}

impl Caller {
    pub(crate) fn find(
        app: &App,
        peer: SocketAddr,
        source: Source,
        headers: &HeaderMap,
    ) -> Result<Self, ApiError> {
        let settings = &app.settings;
        let bearer = credential::bearer(headers)?;
        // A proxy on this machine brings others.
        let is_this_machine =
            source.is_direct && source.address.is_loopback() && settings.is_loopback && !settings.has_proxy();
        let has_admin_token = match (&settings.admin_token, bearer) {
            (Some(admin), Some(token)) => same(admin, token),
            _ => false,
        };
        // Without a token, this machine is the operators'.
        let is_operator = has_admin_token || (settings.admin_token.is_none() && is_this_machine);
        let by_bearer = match bearer.filter(|_| !has_admin_token) {
            Some(token) => by_bearer(app, token)?,
            None => None,
        };
        let is_proved = has_admin_token || by_bearer.is_some();
        let by_cookie = || cookie(headers).and_then(|cookie| app.identity.by_cookie(cookie));
        let program = || bearer.filter(|_| is_this_machine).map(|key| app.identity.program(key));
        let known = by_bearer.or_else(by_cookie).or_else(program);
        let (client, set_cookie) = match known {
            Some(client) => (client, None),
            None => {
                let Some((client, cookie)) = app.identity.newcomer() else {
                    return Err(ApiError::internal("clients cannot be told apart", &"no random numbers"));
                };
                let is_encrypted = app.proxies.contains(peer.ip()) && came_encrypted(headers);
                let cookie = set_cookie(&cookie, is_encrypted, settings);
                (client, HeaderValue::from_str(&cookie).ok())
            }
        };
        Ok(Self { client, is_operator, is_proved, source, set_cookie })
    }

    /// The caller as the agents know them.
    pub(crate) fn visitor(&self, situation: Situation) -> User {
        User { client: self.client.clone(), situation }
    }
}

/// The client that a token or a key proves. Where nothing can be proved, chat programs want a key all the same.
fn by_bearer(app: &App, token: &str) -> Result<Option<Client>, ApiError> {
    match app.identity.by_bearer(token) {
        Ok(client) => Ok(Some(client)),
        Err(NotProved::Invalid) => Err(credential::invalid()),
        Err(NotProved::Unconfigured) if credential::is_token(token) => Ok(None),
        Err(NotProved::Unconfigured) => Err(credential::malformed()),
    }
}

/// Whether the proxy in front of us was asked by HTTPS, as it says.
fn came_encrypted(headers: &HeaderMap) -> bool {
    let said = headers.get_all("x-forwarded-proto").iter().next_back().and_then(|said| said.to_str().ok());
    said.and_then(|said| said.rsplit(',').next()).is_some_and(|last| last.trim() == "https")
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(';'))
        .find_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='))
}

fn set_cookie(cookie: &str, is_encrypted: bool, settings: &Settings) -> String {
    let is_secure = settings.secure_cookie.unwrap_or(is_encrypted);
    // A page on another origin gets its cookie back only if it may travel across sites, which must be encrypted.
    let same_site = if is_secure && !settings.origins.is_empty() { "None" } else { "Lax" };
    let secure = if is_secure { "; Secure" } else { "" };
    format!("{COOKIE}={cookie}; Path=/; Max-Age=31536000; HttpOnly; SameSite={same_site}{secure}")
}

/// Whether two secrets are the same, in a time that does not depend on how much of them is.
fn same(one: &str, other: &str) -> bool {
    use sha2::{Digest, Sha256};
    let differences = Sha256::digest(one.as_bytes())
        .iter()
        .zip(Sha256::digest(other.as_bytes()))
        .fold(0_u8, |differences, (one, other)| differences | (one ^ other));
    differences == 0
}

/// Where and when a person is, as their browser or their page says.
pub(crate) fn situation(headers: &HeaderMap, body: Option<&serde_json::Value>) -> Situation {
    let said = |name: &str| body.and_then(|body| body[name].as_str()).map(str::to_owned);
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let language = header("accept-language").and_then(|list| list.split([',', ';']).next());
    let language = language.map(str::trim).filter(|language| !language.is_empty() && *language != "*");
    Situation {
        time_zone: said("timeZone").or_else(|| header("x-time-zone").map(str::to_owned)),
        locale: said("locale").or_else(|| language.map(str::to_owned)),
    }
}
