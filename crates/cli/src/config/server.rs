//! `[server]` and `[limits]`: where the server listens, and how much it takes from whom.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use quarterdeck_server::Network;

use super::choices::{AddressRange, HostName, ListOf, WebOrigin, choice, choices};
use super::kinds::{Address, Bool, seconds, whole};
use super::reader::Reader;
use super::secret::Secret;
use crate::data;

/// How the server listens.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) listen: SocketAddr,
    /// Origins beside our own that browsers may call from, letter for letter as they send them.
    pub(crate) origins: Vec<String>,
    /// What operators show. There always is one when `listen` is not on loopback.
    pub(crate) admin_token: Option<Secret>,
    /// Whether `X-Forwarded-For` of a proxy on loopback is believed.
    pub(crate) trust_proxy: bool,
    /// Where else proxies are whose `X-Forwarded-For` is believed.
    pub(crate) trusted_proxies: Vec<Network>,
    /// The hosts that requests may be for. Without any, a server beyond loopback takes every one.
    pub(crate) hosts: Vec<String>,
    pub(crate) max_body_bytes: usize,
    pub(crate) max_json_depth: usize,
    /// How long a shutdown waits for what is under way.
    pub(crate) drain: Duration,
    pub(crate) max_connections: usize,
    pub(crate) secure_cookie: SecureCookie,
    pub(crate) cookie_secret: CookieSecret,
}

choices! {
    /// Whether the cookie is marked as one for HTTPS alone.
    enum SecureCookie {
        /// When the request came by HTTPS, as far as can be known.
        Auto = "auto",
        Always = "true",
        Never = "false",
    }
}

/// What signs the cookies.
#[derive(Debug, Clone)]
pub(crate) enum CookieSecret {
    /// One that somebody gave.
    Given(Secret),
    /// One of our own, in the data folder.
    Own,
}

impl CookieSecret {
    /// The secret. Our own is made when it is first asked for.
    pub(crate) fn open(&self, data: &Path) -> anyhow::Result<Secret> {
        match self {
            Self::Given(secret) => Ok(secret.clone()),
            Self::Own => Ok(Secret::new(data::load_cookie_secret(data)?)),
        }
    }
}

/// How much one may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) requests_per_minute_client: u32,
    pub(crate) requests_per_minute_address: u32,
    pub(crate) streams_per_client: usize,
    pub(crate) streams: usize,
    pub(crate) calls: usize,
    pub(crate) connections_per_address: usize,
}

/// Reads `[server]`.
pub(super) fn server(from: &mut Reader) -> Server {
    from.table("server", "Where and how the server listens.");
    let listen = from.read("server.listen", Address, "127.0.0.1:8080", "Where the server listens");
    let hosts = from.read(
        "server.hosts",
        ListOf(HostName),
        Vec::new(),
        "Names that the server is called by; requests for another host are refused. On loopback, localhost and its \
         addresses always are such names; beyond it, an empty list takes every name",
    );
    let origins = from.read(
        "server.origins",
        ListOf(WebOrigin),
        Vec::new(),
        "Front ends on other origins that may call from a browser, with credentials",
    );
    Server {
        listen,
        hosts,
        origins,
        admin_token: admin_token(from, listen),
        trust_proxy: from.read(
            "server.trust_proxy",
            Bool,
            false,
            "Believe the X-Forwarded-For header of proxies on loopback",
        ),
        trusted_proxies: from.read(
            "server.trusted_proxies",
            ListOf(AddressRange),
            Vec::new(),
            "Proxies at these addresses whose X-Forwarded-For header is believed too",
        ),
        max_body_bytes: from.read(
            "server.max_body_bytes",
            whole(1 << 10, 64 << 20),
            1_048_576_u64,
            "The largest body of a request",
        ),
        max_json_depth: from.read(
            "server.max_json_depth",
            whole(4, 127),
            64_u64,
            "How deeply JSON in a request may nest",
        ),
        drain: from.read(
            "server.drain_seconds",
            seconds(0, 600),
            10_u64,
            "How long a shutdown waits for what is under way",
        ),
        max_connections: from.read(
            "server.max_connections",
            whole(1, 1_000_000),
            4_096_u64,
            "Connections that may be open at once",
        ),
        secure_cookie: from.read(
            "server.secure_cookie",
            choice(),
            "auto",
            "Mark the cookie as one for HTTPS alone; \"auto\" does so when the request came by HTTPS",
        ),
        cookie_secret: cookie_secret(from),
    }
}

/// A token that somebody can guess is none.
const TOKEN_AT_LEAST: usize = 16;

fn admin_token(from: &mut Reader, listen: SocketAddr) -> Option<Secret> {
    let about = "A file that holds the token of operators; the variable QUARTERDECK_ADMIN_TOKEN wins over it";
    let file = from.read_secret_path("server.admin_token_file", about);
    let token = from.secret(
        "server.admin_token",
        &["QUARTERDECK_ADMIN_TOKEN"],
        ("server.admin_token_file", file.as_deref()),
        "set QUARTERDECK_ADMIN_TOKEN, or name a file that holds it in `server.admin_token_file`",
    );
    from.check_strength("server.admin_token", token.as_ref(), TOKEN_AT_LEAST);
    if token.is_none() && file.is_none() && !listen.ip().to_canonical().is_loopback() {
        from.block_serve(
            "server.listen",
            format!("listening on {listen}, which others can reach, needs an admin token"),
            Some(
                "set QUARTERDECK_ADMIN_TOKEN to the output of `openssl rand -hex 32`, \
                 or name a file that holds it in `server.admin_token_file`"
                    .into(),
            ),
        );
    }
    token
}

fn cookie_secret(from: &mut Reader) -> CookieSecret {
    let about = "A file that holds what signs the cookies [default: one that is made in the data folder]";
    let file = from.read_secret_path("server.cookie_secret_file", about);
    let about = "name a file that holds it in `server.cookie_secret_file`";
    let place = ("server.cookie_secret_file", file.as_deref());
    let secret = from.secret("server.cookie_secret", &[], place, about);
    from.check_strength("server.cookie_secret", secret.as_ref(), 32);
    from.set_fallback("server.cookie_secret", "made by us");
    secret.map_or(CookieSecret::Own, CookieSecret::Given)
}

/// Reads `[limits]`.
pub(super) fn limits(from: &mut Reader) -> Limits {
    from.table("limits", "How much one may ask for before being told to wait.");
    Limits {
        requests_per_minute_client: from.read(
            "limits.requests_per_minute_client",
            whole(1, 1_000_000),
            60_u64,
            "Requests of one client in a minute",
        ),
        requests_per_minute_address: from.read(
            "limits.requests_per_minute_address",
            whole(1, 1_000_000),
            300_u64,
            "Requests from one address in a minute",
        ),
        streams_per_client: from.read(
            "limits.streams_per_client",
            whole(1, 10_000),
            4_u64,
            "Answers that one client may be receiving at once",
        ),
        streams: from.read(
            "limits.streams",
            whole(1, 1_000_000),
            1_000_u64,
            "Answers that may be under way at once, for everybody together",
        ),
        calls: from.read(
            "limits.calls",
            whole(1, 100_000),
            500_u64,
            "Calls that may be on at once, for everybody together",
        ),
        connections_per_address: from.read(
            "limits.connections_per_address",
            whole(1, 1_000_000),
            512_u64,
            "Connections that one address may have open at once, of IPv6 one network of 64 bits; likewise calls, and \
             answers of those behind a trusted proxy, which itself may have any number",
        ),
    }
}
