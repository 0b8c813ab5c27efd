//! The origin of a page (CORS). Only browsers send one.
//!
//! A page of another origin is a visitor like any other: it may be listed, or be on this machine where the server is too. It
//! never has the rights of operators, whatever machine its browser runs on.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use url::Url;

use crate::app::Settings;
use crate::host;

/// What a token of our own page, or of a program, is bound to instead of an origin.
const OWN: &str = "self";
/// What a page may read of a response besides the plain headers.
const EXPOSED: &str = "date, retry-after, x-request-id, x-vercel-ai-ui-message-stream";
/// Files that any page may show or load: they are the same for all, or their link is the credential.
const OPEN_PATHS: [&str; 4] = ["/embed.js", "/web/{version}/{*path}", "/files/{id}", "/api/page/logo"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Not a browser, or our own page.
    Own,
    /// A page on a configured origin.
    Listed(HeaderValue),
    /// A page on this machine, where the server can be reached from this machine alone. Its cookies are not its own:
    /// those of all ports are one.
    Local(HeaderValue),
    /// A page that loads an open file, as an image or a script. It has no identity and cannot read the response.
    Embedding,
    Foreign,
}

impl Origin {
    /// Of a request to a route.
    pub(crate) fn of(headers: &HeaderMap, route: &str, settings: &Settings) -> Self {
        let Some(origin) = headers.get(header::ORIGIN) else {
            return Self::without_header(headers, route);
        };
        let Ok(text) = origin.to_str() else { return Self::Foreign };
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let own = text.split_once("://").map(|(_, authority)| authority);
        if host.is_some() && own == host {
            return Self::Own;
        }
        if settings.origins.iter().any(|listed| listed.eq_ignore_ascii_case(text)) {
            return Self::Listed(origin.clone());
        }
        let is_local =
            settings.takes_local_origins() && is_loopback(text) && host.is_some_and(host::is_loopback_name);
        if is_local { Self::Local(origin.clone()) } else { Self::Foreign }
    }

    /// Browsers without `Origin` still send whether the page is another's.
    fn without_header(headers: &HeaderMap, route: &str) -> Self {
        let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
        let is_other = matches!(site, Some(b"cross-site" | b"same-site"))
            && headers.get("sec-fetch-mode").is_none_or(|mode| mode != "navigate");
        match is_other {
            true if is_open(route) => Self::Embedding,
            true => Self::Foreign,
            false => Self::Own,
        }
    }

    /// What tokens for this page are bound to; no other page may use them.
    pub(crate) fn binding(&self) -> String {
        match self {
            Self::Listed(origin) | Self::Local(origin) => {
                origin.to_str().unwrap_or_default().to_ascii_lowercase()
            }
            Self::Own | Self::Embedding | Self::Foreign => OWN.to_owned(),
        }
    }

    /// The other origin that the page is of.
    pub(crate) fn other(&self) -> Option<String> {
        matches!(self, Self::Listed(_) | Self::Local(_)).then(|| self.binding())
    }

    /// Whether the cookies of a request are those of the page that sends it.
    pub(crate) fn has_cookies(&self) -> bool {
        matches!(self, Self::Own | Self::Listed(_))
    }

    /// Lets the page read the response.
    pub(crate) fn allow(&self, headers: &mut HeaderMap) {
        let (Self::Listed(origin) | Self::Local(origin)) = self else { return };
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
        headers.append(header::VARY, HeaderValue::from_static("origin"));
        if matches!(self, Self::Listed(_)) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        }
    }
}

/// Whether any page may load what the route serves.
pub(crate) fn is_open(route: &str) -> bool {
    OPEN_PATHS.contains(&route)
}

/// Longer ones are no origins.
const MAX_ORIGIN_BYTES: usize = 260;

/// An origin for the log: as it came, or `invalid` for what is none, in which a client could have put anything.
pub(crate) fn plain_origin(origin: &HeaderValue) -> &str {
    let is_origin = |text: &&str| {
        let authority = text.split_once("://").map(|(_, authority)| authority);
        text.len() <= MAX_ORIGIN_BYTES
            && (*text == "null" || authority.is_some_and(|rest| !rest.contains(['/', '@', '?', '#'])))
    };
    origin.to_str().ok().filter(is_origin).unwrap_or("invalid")
}

/// Only an origin as browsers write it counts: scheme, host and perhaps a port.
fn is_loopback(origin: &str) -> bool {
    let Ok(url) = Url::parse(origin) else { return false };
    matches!(url.scheme(), "http" | "https")
        && url.origin().ascii_serialization() == origin
        && url.host().is_some_and(|host| host::is_loopback(&host))
}

pub(crate) fn allow_preflight(headers: &mut HeaderMap, request: &HeaderMap) {
    headers
        .insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE, OPTIONS"));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    let wanted = HeaderName::from_static("access-control-request-headers");
    // A page that may call may send any header: none of them is trusted.
    if let Some(wanted) = request.get(wanted) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    fn of(pairs: &[(&'static str, &'static str)], settings: &Settings) -> Origin {
        Origin::of(&headers(pairs), "/api/me", settings)
    }

    #[test]
    fn an_origin_is_own_listed_or_foreign() {
        let settings = Settings { origins: vec!["https://shop.example".into()], ..Settings::default() };
        let says = |pairs: &[(&'static str, &'static str)]| of(pairs, &settings);
        assert_eq!(says(&[]), Origin::Own, "not a browser");
        assert_eq!(says(&[("origin", "http://127.0.0.1:8080"), ("host", "127.0.0.1:8080")]), Origin::Own);
        assert_eq!(
            says(&[("origin", "https://shop.example"), ("host", "api.example")]),
            Origin::Listed(HeaderValue::from_static("https://shop.example"))
        );
        for foreign in ["https://evil.example", "null", "http://10.0.0.1", "https://shop.example.evil.net"] {
            assert_eq!(
                says(&[("origin", foreign), ("host", "127.0.0.1:8080")]),
                Origin::Foreign,
                "{foreign}"
            );
        }
        assert_eq!(
            says(&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")]),
            Origin::Own,
            "navigation is allowed"
        );
    }

    #[test]
    fn loopback_origins_are_local_only_where_server_and_host_name_are_too() {
        let local = Settings::default();
        let at = |origin, host, settings: &Settings| of(&[("origin", origin), ("host", host)], settings);
        let is_local =
            |origin, host, settings: &Settings| matches!(at(origin, host, settings), Origin::Local(_));
        for origin in [
            "http://localhost:3000",
            "https://localhost",
            "http://127.0.0.1:8081",
            "http://[::1]:5173",
            "https://app.localhost:3000",
        ] {
            assert!(is_local(origin, "127.0.0.1:8080", &local), "{origin}");
            assert!(is_local(origin, "[::1]:8080", &local), "{origin}");
            // A name that others can reach it by, and a server that others can reach.
            assert!(!is_local(origin, "deck.example", &local), "{origin}");
            for settings in [
                Settings { is_loopback: false, ..Settings::default() },
                Settings { trust_proxy: true, ..Settings::default() },
            ] {
                assert_eq!(at(origin, "127.0.0.1:8080", &settings), Origin::Foreign, "{origin}");
            }
        }
        for foreign in [
            "http://localhost.evil.example",
            "http://127.0.0.1.evil.example",
            "http://evil.example@localhost",
            "http://localhost/",
            "HTTP://localhost",
            "http://localhost:80",
            "http://127.1",
            "ftp://localhost",
            "file://localhost",
            "localhost",
            "null",
            "",
        ] {
            assert_eq!(at(foreign, "127.0.0.1:8080", &local), Origin::Foreign, "{foreign}");
        }
    }

    #[test]
    fn only_what_is_an_origin_is_logged_as_it_came() {
        let plain = |text: &str| plain_origin(&HeaderValue::from_str(text).unwrap()).to_owned();
        for origin in ["https://shop.example:8443", "http://[::1]:5173", "null", "chrome-extension://abc"] {
            assert_eq!(plain(origin), origin);
        }
        for other in ["https://ann:sesame@shop.example", "https://shop.example/?ticket=sesame", "sesame", ""]
        {
            assert_eq!(plain(other), "invalid", "{other}");
        }
        assert_eq!(plain(&format!("https://{}", "a".repeat(MAX_ORIGIN_BYTES))), "invalid");
    }

    #[test]
    fn foreign_pages_may_load_open_files_and_nothing_else() {
        for site in ["cross-site", "same-site"] {
            let loads = headers(&[("sec-fetch-site", site), ("sec-fetch-mode", "no-cors")]);
            let of = |route| Origin::of(&loads, route, &Settings::default());
            assert_eq!(of("/embed.js"), Origin::Embedding);
            assert_eq!(of("/files/{id}"), Origin::Embedding);
            for route in ["/api/me", "/", "/api/deck/live", "/v1/models", "/metrics", "-"] {
                assert_eq!(of(route), Origin::Foreign, "{route}");
            }
        }
    }
}
