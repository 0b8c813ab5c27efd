//! `fetch` for handlers: the hosts that the tool declares, on the public internet, within limits.

mod address;
mod dial;

use std::sync::Arc;

use ::url::Url;
use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};
use reqwest::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue, LOCATION,
};
use reqwest::{Client, Method, Response, StatusCode, redirect};
use serde::Deserialize;
use serde_json::json;

use crate::config::FetchConfig;
use address::AddressRule;
use dial::CheckedNames;

const MOST_REDIRECTS: usize = 5;
/// Headers that are the connection's business and not the handler's.
const RESERVED: [&str; 9] = [
    "host",
    "content-length",
    "connection",
    "transfer-encoding",
    "upgrade",
    "te",
    "trailer",
    "keep-alive",
    "expect",
];

/// What a handler asks for.
#[derive(Debug, Deserialize)]
pub(crate) struct FetchRequest {
    url: String,
    method: String,
    headers: Vec<(String, String)>,
    body: Option<String>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct FetchResponse {
    status: StatusCode,
    url: Url,
    headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl FetchResponse {
    /// All but the body, as `web.js` reads it.
    pub(crate) fn head(&self) -> String {
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers: Vec<_> = self.headers.iter().map(|(name, value)| (name.as_str(), text(value))).collect();
        json!({
            "status": self.status.as_u16(),
            "statusText": self.status.canonical_reason().unwrap_or(""),
            "url": self.url.as_str(),
            "headers": headers,
        })
        .to_string()
    }
}

/// Fetches for all handlers of a host. Each tool's hosts are checked for each hop, each address when it is dialled.
pub(crate) struct Fetcher {
    client: Client,
    rule: Arc<AddressRule>,
    most_bytes: usize,
}

impl Fetcher {
    pub(crate) fn new(config: &FetchConfig) -> Result<Self, String> {
        let rule = Arc::new(AddressRule::new(config.addresses.clone()));
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            // A proxy would dial for us, past the check of addresses.
            .no_proxy()
            .dns_resolver(Arc::new(CheckedNames(rule.clone())))
            .user_agent("quarterdeck")
            .build()
            .map_err(|error| format!("the HTTP client cannot start: {error}"))?;
        Ok(Self { client, rule, most_bytes: config.response })
    }

    /// Fetches within the hosts of `network`. The caller's deadline bounds the time.
    pub(crate) async fn fetch(
        &self,
        request: FetchRequest,
        network: &[String],
    ) -> Result<FetchResponse, CapabilityError> {
        let mut url =
            Url::parse(&request.url).map_err(|error| invalid(format!("the URL is malformed: {error}")))?;
        let mut method =
            Method::from_bytes(request.method.as_bytes()).map_err(|_| invalid("the method is malformed"))?;
        let mut headers = headers_of(&request.headers)?;
        let mut body = request.body;
        for _ in 0..=MOST_REDIRECTS {
            self.check(&url, network)?;
            let mut sending = self.client.request(method.clone(), url.clone()).headers(headers.clone());
            if let Some(body) = &body {
                sending = sending.body(body.clone());
            }
            let response = sending.send().await.map_err(|error| failed(&url, &error))?;
            let Some(next) = redirect_target(&url, &response)? else {
                return self.read(url, response).await;
            };
            if url.scheme() == "https" && next.scheme() != "https" {
                return Err(refused(format!("{} redirects to an unencrypted address", host_of(&url))));
            }
            let status = response.status();
            let as_get = match status {
                StatusCode::SEE_OTHER => method != Method::HEAD,
                StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => method == Method::POST,
                _ => false,
            };
            if as_get {
                (method, body) = (Method::GET, None);
                headers.remove(CONTENT_TYPE);
            }
            if next.origin() != url.origin() {
                headers.remove(AUTHORIZATION);
                headers.remove(COOKIE);
            }
            url = next;
        }
        Err(CapabilityError::new(CapabilityErrorCode::NotAvailable, "too many redirects"))
    }

    /// What can be known of a hop before a name is looked up.
    fn check(&self, url: &Url, network: &[String]) -> Result<(), CapabilityError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid(format!("fetch speaks http and https, not {}", url.scheme())));
        }
        let host = host_of(url);
        if !network.contains(&host) {
            return Err(CapabilityError::not_declared(&format!("\"network\": [\"{host}\"]")));
        }
        // An address in the URL is dialled without a look-up, so the look-up's check would not see it.
        self.rule.check_literal(url).map_err(refused)
    }

    async fn read(&self, url: Url, mut response: Response) -> Result<FetchResponse, CapabilityError> {
        let too_large = || {
            let message = format!("the response is larger than {} bytes", self.most_bytes);
            CapabilityError::new(CapabilityErrorCode::NotAvailable, message)
        };
        let announced =
            response.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if announced.is_some_and(|length: u64| length > self.most_bytes as u64) {
            return Err(too_large());
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| failed(&url, &error))? {
            if body.len() + chunk.len() > self.most_bytes {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(FetchResponse { status: response.status(), url, headers: response.headers().clone(), body })
    }
}

fn redirect_target(url: &Url, response: &Response) -> Result<Option<Url>, CapabilityError> {
    let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
    match (response.status().as_u16(), location) {
        (301 | 302 | 303 | 307 | 308, Some(location)) => {
            let next =
                url.join(location).map_err(|error| invalid(format!("a redirect is malformed: {error}")))?;
            Ok(Some(next))
        }
        _ => Ok(None),
    }
}

fn headers_of(pairs: &[(String, String)]) -> Result<HeaderMap, CapabilityError> {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let malformed = || invalid(format!("the header \"{name}\" is malformed"));
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| malformed())?;
        let value = HeaderValue::from_str(value).map_err(|_| malformed())?;
        if !RESERVED.contains(&name.as_str()) && !name.as_str().starts_with("proxy-") {
            headers.append(name, value);
        }
    }
    Ok(headers)
}

fn host_of(url: &Url) -> String {
    url.host_str().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase()
}

fn invalid(message: impl Into<String>) -> CapabilityError {
    CapabilityError::new(CapabilityErrorCode::InvalidArgument, message)
}

/// Something that no declaration and no retry would allow.
fn refused(message: impl Into<String>) -> CapabilityError {
    CapabilityError::new(CapabilityErrorCode::NotDeclared, message)
}

fn failed(url: &Url, error: &reqwest::Error) -> CapabilityError {
    // The reason of a refused dial lies deep in the chain; the chain's other words are for nobody.
    let mut source: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = source {
        if let Some(refusal) = error.downcast_ref::<address::Refusal>() {
            return refused(refusal.to_string());
        }
        source = error.source();
    }
    let what = if error.is_connect() { "cannot be reached" } else { "broke off" };
    CapabilityError::new(CapabilityErrorCode::NotAvailable, format!("{} {what}", host_of(url)))
}
