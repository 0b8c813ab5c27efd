//! `fetch` for handlers: the hosts that the tool declares, on the public internet, within limits.

mod address;
mod dial;
mod failure;
mod redirect;

use std::sync::Arc;

use ::url::Url;
use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode};
use reqwest::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response, StatusCode};
use serde::Deserialize;
use serde_json::json;

use crate::config::FetchConfig;
use address::AddressRule;
use dial::CheckedNames;
pub(crate) use failure::FetchFailure;
use redirect::Hop;

const MAX_REDIRECTS: usize = 5;
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
    max_bytes: usize,
}

impl Fetcher {
    pub(crate) fn new(config: &FetchConfig) -> Result<Self, String> {
        let rule = Arc::new(AddressRule::new(config.addresses.clone()));
        let client = Client::builder()
            .redirect(Policy::none())
            // A proxy would dial for us, past the check of addresses.
            .no_proxy()
            .dns_resolver(Arc::new(CheckedNames(rule.clone())))
            .user_agent("quarterdeck")
            .build()
            .map_err(|error| format!("the HTTP client cannot start: {error}"))?;
        Ok(Self { client, rule, max_bytes: config.max_response_bytes })
    }

    /// Fetches within the hosts of `network`. The caller's deadline bounds the time.
    pub(crate) async fn fetch(
        &self,
        request: FetchRequest,
        network: &[String],
    ) -> Result<FetchResponse, FetchFailure> {
        let mut hop = Hop {
            url: Url::parse(&request.url)
                .map_err(|error| invalid(format!("the URL is malformed: {error}")))?,
            method: Method::from_bytes(request.method.as_bytes())
                .map_err(|_| invalid("the method is malformed"))?,
            headers: headers_of(&request.headers)?,
            body: request.body,
        };
        self.check(&hop.url, network)?;
        for _ in 0..=MAX_REDIRECTS {
            let mut sending =
                self.client.request(hop.method.clone(), hop.url.clone()).headers(hop.headers.clone());
            if let Some(body) = &hop.body {
                sending = sending.body(body.clone());
            }
            let response =
                sending.send().await.map_err(|error| FetchFailure::of_sending(&host_of(&hop.url), &error))?;
            let Some(next) = redirect::target(&hop.url, &response)? else {
                return self.read(hop.url, response).await;
            };
            self.check_redirect(&hop.url, &next, network)?;
            hop.follow(response.status(), next);
        }
        Err(CapabilityError::new(CapabilityErrorCode::NotAvailable, "too many redirects").into())
    }

    /// What can be known of a first request before a name is looked up.
    fn check(&self, url: &Url, network: &[String]) -> Result<(), FetchFailure> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid(format!("fetch speaks http and https, not {}", url.scheme())).into());
        }
        if has_credentials(url) {
            let message =
                "a URL that is fetched has no user name and no password; send an Authorization header";
            return Err(invalid(message).into());
        }
        let host = host_of(url);
        if !network.contains(&host) {
            return Err(CapabilityError::not_declared(&format!("\"network\": [\"{host}\"]")).into());
        }
        // An address in the URL is dialled without a look-up, so the look-up's check would not see it.
        self.rule.check_literal(url).map_err(|refusal| {
            let message = "this address may not be reached: handlers reach the public internet only";
            FetchFailure::new(refused(message), format!("fetch refused: {refusal}"))
        })
    }

    /// The same for where a server sends us. What it says there is not the handler's to know: a declared host may
    /// lie at the edge of a network whose names and addresses are private.
    fn check_redirect(&self, from: &Url, to: &Url, network: &[String]) -> Result<(), FetchFailure> {
        let from_host = host_of(from);
        let refuse = |message: &str, why: &str| {
            let log_line = format!("fetch refused: {from_host} redirects to {}, {why}", host_of(to));
            Err(FetchFailure::new(refused(format!("{from_host} redirects {message}")), log_line))
        };
        if !matches!(to.scheme(), "http" | "https") {
            return Err(
                invalid(format!("{from_host} redirects to something that is not http or https")).into()
            );
        }
        if has_credentials(to) {
            return refuse("to a URL with a user name or a password", "with a user name or a password");
        }
        if from.scheme() == "https" && to.scheme() != "https" {
            return refuse("to an unencrypted address", "unencrypted");
        }
        if let Err(refusal) = self.rule.check_literal(to) {
            return refuse("to where handlers may not go", &refusal.to_string());
        }
        if !network.contains(&host_of(to)) {
            return refuse(
                "to a host that `network` does not name; the log has it",
                "which `network` does not name",
            );
        }
        Ok(())
    }

    async fn read(&self, url: Url, mut response: Response) -> Result<FetchResponse, FetchFailure> {
        let too_large = || {
            let message = format!("the response is larger than {} bytes", self.max_bytes);
            FetchFailure::from(CapabilityError::new(CapabilityErrorCode::NotAvailable, message))
        };
        let announced =
            response.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if announced.is_some_and(|length: u64| length > self.max_bytes as u64) {
            return Err(too_large());
        }
        let mut body = Vec::new();
        let broken = |error: reqwest::Error| FetchFailure::of_sending(&host_of(&url), &error);
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            if body.len() + chunk.len() > self.max_bytes {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(FetchResponse { status: response.status(), url, headers: response.headers().clone(), body })
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

fn has_credentials(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
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
