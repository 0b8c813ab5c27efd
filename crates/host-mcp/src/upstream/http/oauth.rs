//! Tokens by OAuth 2.1 client credentials: ours, for one server, and never a client's.

use std::time::{Duration, Instant};

use quarterdeck_outbound::{PrivateHost, SecretText};
use reqwest::Client;
use reqwest::header::ACCEPT;
use serde::Deserialize;
use tokio::sync::Mutex;
use url::Url;

use super::dial;
use crate::server_config::OAuthConfig;

const MAX_BODY_BYTES: usize = 64 * 1024;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// A token is not used in its last moments: it would run out under way.
const EXPIRY_MARGIN: Duration = Duration::from_secs(30);
/// Of a token that does not say how long it is good.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(300);
const MAX_LIFETIME: Duration = Duration::from_secs(24 * 3_600);

/// Gets tokens for one server, and keeps the last one.
pub(crate) struct TokenSource {
    config: OAuthConfig,
    resource: Url,
    opened: Vec<PrivateHost>,
    cached: Mutex<Option<CachedToken>>,
}

struct CachedToken {
    token: SecretText,
    until: Instant,
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    token_type: String,
    expires_in: Option<u64>,
}

#[derive(Deserialize)]
struct ResourceMetadata {
    #[serde(default)]
    authorization_servers: Vec<String>,
}

#[derive(Deserialize)]
struct IssuerMetadata {
    issuer: String,
    token_endpoint: String,
}

impl TokenSource {
    pub(crate) fn new(config: OAuthConfig, resource: Url, opened: Vec<PrivateHost>) -> Self {
        Self { config, resource, opened, cached: Mutex::default() }
    }

    /// A token that is good, as far as is known. Calls that need a new one wait for the same request.
    pub(crate) async fn token(&self) -> Result<SecretText, String> {
        let mut cached = self.cached.lock().await;
        if let Some(known) = cached.as_ref().filter(|known| known.until > Instant::now()) {
            return Ok(known.token.clone());
        }
        let fresh = self.request().await?;
        let token = fresh.token.clone();
        *cached = Some(fresh);
        Ok(token)
    }

    /// Forgets a token that the server has refused, unless another one has taken its place.
    pub(crate) async fn forget(&self, refused: &SecretText) {
        let mut cached = self.cached.lock().await;
        if cached.as_ref().is_some_and(|known| known.token == *refused) {
            *cached = None;
        }
    }

    async fn request(&self) -> Result<CachedToken, String> {
        let url = match &self.config.token_url {
            Some(url) => url.clone(),
            None => self.discover().await?,
        };
        let mut form =
            vec![("grant_type", "client_credentials".to_owned()), ("resource", self.resource.to_string())];
        if !self.config.scopes.is_empty() {
            form.push(("scope", self.config.scopes.join(" ")));
        }
        let body: String = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let encoded = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let request = dial::client(&url, &self.opened)?
            .post(url)
            .header(ACCEPT, "application/json")
            .header("content-type", "application/x-www-form-urlencoded")
            .basic_auth(encoded(&self.config.client_id), Some(encoded(self.config.client_secret.expose())))
            .body(body);
        let answer: TokenAnswer = read(request).await.map_err(|why| format!("no token was issued: {why}"))?;
        if !answer.token_type.eq_ignore_ascii_case("bearer") || answer.access_token.is_empty() {
            return Err("no token was issued: the answer holds no bearer token".to_owned());
        }
        let lifetime = answer.expires_in.map_or(DEFAULT_LIFETIME, Duration::from_secs).min(MAX_LIFETIME);
        let until = Instant::now() + lifetime.saturating_sub(EXPIRY_MARGIN).max(Duration::from_secs(1));
        Ok(CachedToken { token: SecretText::from(answer.access_token.as_str()), until })
    }

    /// Asks the server who issues its tokens (RFC 9728), and that one where (RFC 8414). Only the server's own well-known
    /// place is asked: where a refusal points to is the word of the server that refuses.
    async fn discover(&self) -> Result<Url, String> {
        let place = well_known(&self.resource, "oauth-protected-resource");
        let resource: ResourceMetadata = self.get(place).await?;
        let issuer = resource
            .authorization_servers
            .into_iter()
            .next()
            .ok_or_else(|| "its metadata names no authorization server; set `token_url`".to_owned())?;
        let place = well_known(&parse_url(&issuer)?, "oauth-authorization-server");
        let found: IssuerMetadata = self.get(place).await?;
        // RFC 8414, 3.3: metadata of another issuer is not used.
        if found.issuer.trim_end_matches('/') != issuer.trim_end_matches('/') {
            return Err("its metadata is of another issuer than it names; set `token_url`".to_owned());
        }
        parse_url(&found.token_endpoint)
    }

    async fn get<T: for<'a> Deserialize<'a>>(&self, url: Url) -> Result<T, String> {
        let client: Client = dial::client(&url, &self.opened)?;
        let request = client.get(url).header(ACCEPT, "application/json");
        read(request).await.map_err(|why| format!("its metadata is not there ({why}); set `token_url`"))
    }
}

async fn read<T: for<'a> Deserialize<'a>>(request: reqwest::RequestBuilder) -> Result<T, String> {
    let response = request.timeout(REQUEST_TIMEOUT).send().await.map_err(super::describe_error)?;
    let status = response.status();
    if !status.is_success() {
        return Err(format!("HTTP {}", status.as_u16()));
    }
    let body = dial::read_body(response, MAX_BODY_BYTES).await.map_err(super::describe_error)?;
    let body = body.ok_or_else(|| "the answer is too large".to_owned())?;
    serde_json::from_slice(&body).map_err(|_| "the answer is malformed".to_owned())
}

fn parse_url(text: &str) -> Result<Url, String> {
    Url::parse(text).map_err(|_| "its metadata holds a malformed URL; set `token_url`".to_owned())
}

/// `https://host/.well-known/NAME/path`.
fn well_known(url: &Url, name: &str) -> Url {
    let mut place = url.clone();
    let path = url.path().trim_end_matches('/');
    place.set_path(&format!("/.well-known/{name}{path}"));
    place.set_query(None);
    place.set_fragment(None);
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_at_the_well_known_place_of_its_url() {
        let place = |url: &str| well_known(&Url::parse(url).unwrap(), "oauth-protected-resource").to_string();
        assert_eq!(
            place("https://a.example/mcp?x=1"),
            "https://a.example/.well-known/oauth-protected-resource/mcp"
        );
        assert_eq!(place("https://a.example"), "https://a.example/.well-known/oauth-protected-resource");
    }
}
