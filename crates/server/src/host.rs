//! Checks the `Host` of a request, against DNS rebinding.
//!
//! A page whose name was made to point at this machine sends its own name. Where the server's names are known, any
//! other is refused: on loopback they are known, beyond it the operator lists them.

use axum::http::{HeaderMap, Uri, Version, header};
use quarterdeck_contracts::ErrorType;
use url::{Host, Url};

use crate::app::Settings;
use crate::error::ApiError;

pub(crate) fn check(
    version: Version,
    uri: &Uri,
    headers: &HeaderMap,
    settings: &Settings,
) -> Result<(), ApiError> {
    let host = requested_host(version, uri, headers)?;
    match host {
        Some(host) if !is_known_host(&host, settings) => {
            let message = "Unknown host name. The operator can list it under `server.hosts`.";
            Err(ApiError::new(ErrorType::Unavailable, message))
        }
        _ => Ok(()),
    }
}

/// Only HTTP/1.0 may leave out the host; no browser sends that.
fn requested_host(version: Version, uri: &Uri, headers: &HeaderMap) -> Result<Option<Url>, ApiError> {
    let mut values = headers.get_all(header::HOST).iter();
    let host = values.next();
    if values.next().is_some() {
        return Err(ApiError::validation("Send one `Host` header, not several."));
    }
    if host.is_none() && version > Version::HTTP_10 {
        return Err(ApiError::validation("Send a `Host` header; HTTP/1.1 requires it."));
    }
    let host = match host {
        Some(host) => Some(host.to_str().ok().and_then(parse_host).ok_or_else(malformed)?),
        None => None,
    };
    let Some(target) = uri.authority() else { return Ok(host) };
    // A proxy may check one and we the other, so they must be equal.
    let target = parse_host(target.as_str()).ok_or_else(malformed)?;
    match host {
        Some(host) if host != target => {
            Err(ApiError::validation("The `Host` header and the request's target name different hosts."))
        }
        _ => Ok(Some(target)),
    }
}

fn malformed() -> ApiError {
    ApiError::validation("The host is malformed. Send a name or an address, and a port if needed.")
}

/// A host and its port, as browsers parse them.
fn parse_host(host: &str) -> Option<Url> {
    let is_allowed = |letter: u8| letter.is_ascii_alphanumeric() || b"-._~:[]".contains(&letter);
    if host.is_empty() || !host.bytes().all(is_allowed) {
        return None;
    }
    Url::parse(&format!("http://{host}")).ok().filter(Url::has_host)
}

/// Without a list, a server that others can reach accepts every name: it cannot know its own, and refusing all would
/// close it. A foreign name reaches only what any anonymous client can, because cookies belong to a name and operators
/// need a token; `serve` warns about it.
fn is_known_host(host: &Url, settings: &Settings) -> bool {
    if settings.takes_any_host() || host.host().is_some_and(|host| is_loopback(&host)) {
        return true;
    }
    let name = host.host_str().unwrap_or_default();
    let name = name.strip_suffix('.').unwrap_or(name);
    settings.hosts.iter().any(|listed| listed.eq_ignore_ascii_case(name))
}

/// Whether a `Host` header names this machine.
pub(crate) fn is_loopback_name(host: &str) -> bool {
    parse_host(host).is_some_and(|url| url.host().is_some_and(|host| is_loopback(&host)))
}

pub(crate) fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost" || name.ends_with(".localhost"),
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn status(version: Version, target: &str, hosts: &[&str], settings: &Settings) -> u16 {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, HeaderValue::from_str(host).unwrap());
        }
        let checked = check(version, &target.parse().unwrap(), &headers, settings);
        checked.map_or_else(|refused| refused.status.as_u16(), |()| 200)
    }

    fn of(host: &str, settings: &Settings) -> u16 {
        status(Version::HTTP_11, "/", &[host], settings)
    }

    #[test]
    fn a_host_name_that_was_rebound_to_loopback_is_refused() {
        let local = Settings::default();
        for known in ["localhost:8080", "127.0.0.1", "[::1]:8080", "quarterdeck.localhost", "LOCALHOST"] {
            assert_eq!(of(known, &local), 200, "{known}");
        }
        for foreign in ["evil.example:8080", "127.0.0.1.evil.example", "10.0.0.1", "localhost.evil.example"] {
            assert_eq!(of(foreign, &local), 403, "{foreign}");
        }
        for malformed in
            ["", " ", "bad host", "a@localhost", "localhost/", "localhost:x", "localhost,evil", "[::1", "%6c"]
        {
            assert_eq!(of(malformed, &local), 400, "{malformed}");
        }
    }

    #[test]
    fn a_listed_host_is_known_and_without_a_list_every_host_beyond_loopback_is() {
        let hosts = vec!["shop.example".to_owned(), "192.0.2.1".to_owned()];
        let open = Settings { is_loopback: false, ..Settings::default() };
        let proxied = Settings { trust_proxy: true, ..Settings::default() };
        for settings in [open, proxied] {
            assert_eq!(of("shop.example", &settings), 200);
            let settings = Settings { hosts: hosts.clone(), ..settings };
            for known in ["shop.example", "SHOP.example:8443", "shop.example.", "192.0.2.1:80", "localhost"] {
                assert_eq!(of(known, &settings), 200, "{known}");
            }
            for foreign in ["evil.example", "shop.example.evil.example", "192.0.2.2", "xshop.example"] {
                assert_eq!(of(foreign, &settings), 403, "{foreign}");
            }
        }
        let local = Settings { hosts, ..Settings::default() };
        assert_eq!((of("shop.example", &local), of("evil.example", &local)), (200, 403));
    }

    #[test]
    fn there_is_one_host_header_and_the_target_agrees_with_it() {
        let local = Settings::default();
        let (one, zero) = (Version::HTTP_11, Version::HTTP_10);
        assert_eq!(status(one, "/", &[], &local), 400);
        assert_eq!(status(one, "/", &["localhost", "localhost"], &local), 400);
        assert_eq!(status(one, "/", &["localhost", "evil.example"], &local), 400);
        assert_eq!(status(zero, "/", &[], &local), 200);
        assert_eq!(status(zero, "/", &["localhost", "localhost"], &local), 400);
        assert_eq!(status(one, "http://localhost/", &["localhost:80"], &local), 200);
        assert_eq!(status(one, "http://evil.example/", &["localhost"], &local), 400);
        assert_eq!(status(one, "http://localhost/", &["evil.example"], &local), 400);
        assert_eq!(status(one, "http://localhost:81/", &["localhost"], &local), 400);
        assert_eq!(status(one, "http://evil.example/", &["evil.example"], &local), 403);
        assert_eq!(status(zero, "http://evil.example/", &[], &local), 403);
        assert_eq!(status(one, "http://a@localhost/", &["localhost"], &local), 400);
    }
}
