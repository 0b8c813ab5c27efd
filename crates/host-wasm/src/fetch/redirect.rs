//! Redirects, by the rules of the Fetch standard, and with less trust: what a handler sends to one origin is not for
//! the next one.

use ::url::Url;
use quarterdeck_contracts::handler::CapabilityError;
use reqwest::header::{
    ACCEPT, ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION, CONTENT_TYPE, HeaderMap,
    HeaderName, LOCATION, RANGE, USER_AGENT,
};
use reqwest::{Method, Response, StatusCode};

use super::invalid;

/// Headers that cannot carry a secret of the origin that they were meant for. Everything else stays with it: keys of
/// interfaces have as many names as there are interfaces.
const KEPT_ACROSS_ORIGINS: [HeaderName; 6] =
    [ACCEPT, ACCEPT_LANGUAGE, CONTENT_LANGUAGE, CONTENT_TYPE, RANGE, USER_AGENT];

/// Headers that describe a body, and go with it.
const OF_BODY: [HeaderName; 4] = [CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION, CONTENT_TYPE];

/// One request on the way to a response.
pub(super) struct Hop {
    pub(super) url: Url,
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<String>,
    /// Whether a redirect has led to another origin. From then on the tool's secrets stay behind, also on the way back:
    /// where the request goes is no longer the handler's decision.
    pub(super) has_left_its_origin: bool,
}

impl Hop {
    /// Becomes the request that follows a redirect with this status.
    pub(super) fn follow(&mut self, status: StatusCode, next: Url) {
        let is_plain = self.method == Method::GET || self.method == Method::HEAD;
        let becomes_get = match status {
            StatusCode::SEE_OTHER => !is_plain,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method == Method::POST,
            _ => false,
        };
        if becomes_get {
            self.method = Method::GET;
            self.body = None;
            for name in OF_BODY {
                self.headers.remove(name);
            }
        }
        if next.origin() != self.url.origin() {
            self.has_left_its_origin = true;
            let names: Vec<_> = self.headers.keys().cloned().collect();
            for name in names.iter().filter(|name| !KEPT_ACROSS_ORIGINS.contains(name)) {
                self.headers.remove(name);
            }
        }
        self.url = next;
    }
}

/// Where a response leads, if it leads elsewhere.
pub(super) fn target(url: &Url, response: &Response) -> Result<Option<Url>, CapabilityError> {
    let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
    match (response.status().as_u16(), location) {
        (301 | 302 | 303 | 307 | 308, Some(location)) => {
            url.join(location).map(Some).map_err(|_| invalid("a redirect is malformed"))
        }
        _ => Ok(None),
    }
}
