//! `[server]` and `[limits]`: where the server listens, and its limits.

use std::net::SocketAddr;
use std::path::Path;

use quarterdeck_server::Settings;
use quarterdeck_transports::Secret;

use super::kinds::{
    address, auto_or_boolean, boolean, frame_ancestor, host_name, list, network, seconds, web_origin, whole,
};
use super::reader::{Reader, settings};
use crate::data;

/// How the server listens.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) listen: SocketAddr,
    /// Always set when `listen` is not on loopback.
    pub(crate) admin_token: Option<Secret>,
    pub(crate) cookie_secret: CookieSecret,
    /// Without the admin token, so that it can be shown.
    pub(crate) settings: Settings,
}

/// What signs cookies.
#[derive(Debug, Clone)]
pub(crate) enum CookieSecret {
    Configured(Secret),
    /// Generated, in the data folder.
    Generated,
}

impl CookieSecret {
    pub(crate) fn load(&self, data: &Path) -> anyhow::Result<Secret> {
        match self {
            Self::Configured(secret) => Ok(secret.clone()),
            Self::Generated => Ok(data::load_cookie_secret(data)?.into()),
        }
    }
}

pub(super) fn server(from: &mut Reader) -> Server {
    let mut settings = Settings::default();
    let mut listen = SocketAddr::from(([127, 0, 0, 1], 8080));
    from.table("server", "Where and how the server listens.");
    settings! { from;
        "listen": address() => listen, "Where the server listens";
        "hosts": list(host_name()) => settings.hosts,
            "Names that the server is called by; requests for another host are refused. On loopback, localhost and its \
             addresses always are such names; beyond it, an empty list takes every name";
        "origins": list(web_origin()) => settings.origins,
            "Front ends on other origins that may call from a browser, with credentials; while the server can be reached from \
             this machine alone, pages on this machine may call as visitors without being listed";
        "frame_ancestors": list(frame_ancestor()) => settings.frame_ancestors,
            "Sites that may show the page in a frame";
    }
    let is_loopback = listen.ip().to_canonical().is_loopback();
    let admin_token = admin_token(from, listen, is_loopback);
    settings! { from;
        "trust_proxy": boolean() => settings.trust_proxy, "Believe the X-Forwarded-For header of proxies on loopback";
        "trusted_proxies": list(network()) => settings.trusted_proxies,
            "Proxies at these addresses whose X-Forwarded-For header is believed too";
        "max_body_bytes": whole(1 << 10, 64 << 20) => settings.max_body_bytes, "The largest body of a request";
        "max_json_depth": whole(4, 127) => settings.max_json_depth, "How deeply JSON in a request may nest";
        "drain_seconds": seconds(0, 600) => settings.drain, "How long a shutdown waits for running answers";
        "max_connections": whole(1, 1_000_000) => settings.max_connections, "Connections that may be open at once";
        "secure_cookie": auto_or_boolean() => settings.secure_cookie,
            "Mark the cookie as one for HTTPS alone; \"auto\" does so when the request came by HTTPS";
    }
    let cookie_secret = cookie_secret(from);
    limits(from, &mut settings);
    settings.is_loopback = is_loopback;
    Server { listen, admin_token, cookie_secret, settings }
}

fn limits(from: &mut Reader, settings: &mut Settings) {
    from.table("limits", "How much clients may ask for before they have to wait.");
    settings! { from;
        "requests_per_minute_client": whole(1, 1_000_000) => settings.messages_per_minute,
            "Requests of one client in a minute";
        "requests_per_minute_address": whole(1, 1_000_000) => settings.requests_per_minute,
            "Requests from one address in a minute";
        "streams_per_client": whole(1, 10_000) => settings.streams_per_client,
            "Answers that one client may be receiving at once";
        "streams": whole(1, 1_000_000) => settings.streams,
            "Answers that may be streamed at once, for all clients together";
        "file_link_seconds": seconds(60, 30 * 24 * 3_600) => settings.file_link_lifetime,
            "How long a link to an image of a conversation is valid; a conversation that is loaded again has new ones";
        "calls": whole(1, 100_000) => settings.voice_connections,
            "Voice calls that may be open at once, for all clients together";
        "connections_per_address": whole(1, 1_000_000) => settings.connections_per_address,
            "Connections that one address may have open at once, of IPv6 one network of 64 bits; likewise calls, and \
             answers of those behind a trusted proxy, which itself may have any number";
    }
}

/// A shorter token could be guessed.
const MIN_TOKEN_CHARS: usize = 16;

fn admin_token(from: &mut Reader, listen: SocketAddr, is_loopback: bool) -> Option<Secret> {
    let about = "A file that holds the token of operators; the variable QUARTERDECK_ADMIN_TOKEN wins over it";
    let (token, file) = from.secret(
        "admin_token",
        &["QUARTERDECK_ADMIN_TOKEN"],
        about,
        "set QUARTERDECK_ADMIN_TOKEN, or name a file that holds it in `server.admin_token_file`",
    );
    from.check_strength("server.admin_token", token.as_ref(), MIN_TOKEN_CHARS);
    if token.is_none() && file.is_none() && !is_loopback {
        from.add_serve_problem(
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
    let about =
        "A file that holds the secret that signs cookies [default: one that is generated in the data folder]";
    let way_out = "name a file that holds it in `server.cookie_secret_file`";
    let (secret, _) = from.secret("cookie_secret", &[], about, way_out);
    from.check_strength("server.cookie_secret", secret.as_ref(), 32);
    from.set_fallback("server.cookie_secret", "generated");
    secret.map_or(CookieSecret::Generated, CookieSecret::Configured)
}
