//! Who makes a request, as the guard has established it.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderValue, header};
use quarterdeck_agents::Situation;
use quarterdeck_agents::text::Visitor;
use quarterdeck_runtime::Client;

use crate::app::{App, Settings};
use crate::error::ApiError;
use crate::identity::{COOKIE, NotProved};

/// Where a connection comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// Who makes a request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) client: Client,
    /// Whether they may see what is the operators'.
    pub(crate) is_operator: bool,
    pub(crate) address: IpAddr,
    /// The cookie for somebody new.
    pub(crate) set_cookie: Option<HeaderValue>,
}

/// The address that asks. A proxy on this machine may speak for others, when it is trusted.
pub(crate) fn address(peer: SocketAddr, headers: &HeaderMap, settings: &Settings) -> IpAddr {
    let forwarded = headers.get("x-forwarded-for").and_then(|value| value.to_str().ok());
    // The last address is the one that our own proxy has seen; those before it are what its client says.
    let last = forwarded.and_then(|list| list.rsplit(',').next()).and_then(|last| last.trim().parse().ok());
    match last {
        Some(address) if settings.trust_proxy && peer.ip().is_loopback() => address,
        _ => peer.ip(),
    }
}

impl Caller {
    pub(crate) fn find(app: &App, peer: SocketAddr, headers: &HeaderMap) -> Result<Self, ApiError> {
        let address = address(peer, headers, &app.settings);
        let bearer = bearer(headers);
        // A proxy on this machine brings others.
        let is_this_machine = address.is_loopback() && app.settings.is_loopback && !app.settings.trust_proxy;
        let is_operator = match (&app.settings.admin_token, bearer) {
            (Some(admin), Some(token)) if same(admin, token) => true,
            (Some(_), _) => false,
            // Without a token, this machine is the operators'.
            (None, _) => is_this_machine,
        };
        let by_bearer = match bearer {
            Some(token) if !(is_operator && app.settings.admin_token.is_some()) => {
                match app.identity.by_bearer(token) {
                    Ok(client) => Some(client),
                    Err(NotProved::Invalid) => return Err(unauthorised()),
                    // Chat programs want a key even where none is needed.
                    Err(NotProved::Unconfigured) => None,
                }
            }
            _ => None,
        };
        let by_cookie = || cookie(headers).and_then(|cookie| app.identity.by_cookie(cookie));
        let program = || bearer.filter(|_| is_this_machine).map(|key| app.identity.program(key));
        let known = by_bearer.or_else(by_cookie).or_else(program);
        if let Some(client) = known {
            return Ok(Self { client, is_operator, address, set_cookie: None });
        }
        let Some((client, cookie)) = app.identity.newcomer() else {
            return Err(ApiError::internal("nobody can be told apart", &"no random numbers"));
        };
        let set_cookie = HeaderValue::from_str(&set_cookie(&cookie, headers, &app.settings)).ok();
        Ok(Self { client, is_operator, address, set_cookie })
    }

    /// The caller as the agents know them.
    pub(crate) fn visitor(&self, situation: Situation) -> Visitor {
        Visitor { client: self.client.clone(), situation }
    }
}

fn unauthorised() -> ApiError {
    ApiError::new(quarterdeck_contracts::ErrorType::Auth, "The bearer token is not valid, or has expired.")
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(';'))
        .find_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='))
}

fn set_cookie(cookie: &str, headers: &HeaderMap, settings: &Settings) -> String {
    let is_encrypted =
        settings.trust_proxy && headers.get("x-forwarded-proto").is_some_and(|with| with == "https");
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
