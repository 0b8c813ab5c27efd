//! `fetch` for handlers: the hosts that the tool declares, on the public internet or opened by an operator, within
//! limits, and with the tool's secrets added on the way.

mod failure;
mod grants;
mod redaction;
mod redirect;
mod secrets;
mod stand_in;

use std::sync::{Arc, OnceLock};

use ::url::Url;
use quarterdeck_contracts::Metadata;
use quarterdeck_contracts::handler::{CapabilityError, CapabilityErrorCode, Context};
use quarterdeck_outbound::{AddressRule, CheckedNames, OpenedHosts, PrivateHost, Refusal, literal_in};
use reqwest::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config::FetchConfig;
use failure::Destination;
pub(crate) use failure::FetchFailure;
pub use grants::ToolGrants;
use redaction::Redactor;
use redirect::Hop;
use secrets::ToolSecrets;
pub use stand_in::{FetchAnswers, FetchStandIn, StandInAnswer};

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
#[derive(Debug, PartialEq, Deserialize)]
pub(crate) struct FetchRequest {
    url: String,
    #[serde(default = "get")]
    method: String,
    #[serde(default)]
    headers: Vec<(String, String)>,
    #[serde(default)]
    body: Option<String>,
}

fn get() -> String {
    "GET".to_owned()
}

/// What came back.
#[derive(Debug)]
pub(crate) struct FetchResponse {
    status: StatusCode,
    url: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl FetchResponse {
    /// All but the body.
    pub(crate) fn head(&self) -> Value {
        json!({
            "status": self.status.as_u16(),
            "statusText": self.status.canonical_reason().unwrap_or(""),
            "url": self.url,
            "headers": self.headers,
        })
    }

    /// All of it. A body that is not UTF-8 is written as base64.
    pub(crate) fn to_json(&self) -> Value {
        let mut response = self.head();
        match std::str::from_utf8(&self.body) {
            Ok(text) => response["body"] = text.into(),
            Err(_) => {
                response["bodyBase64"] = base64_simd::STANDARD.encode_to_string(&self.body).into();
            }
        }
        response
    }

    fn redacted(self, redactor: &Redactor) -> Self {
        let hide = |text: String| redactor.hide_in_text(&text);
        Self {
            status: self.status,
            url: hide(self.url),
            headers: self.headers.into_iter().map(|(name, value)| (hide(name), hide(value))).collect(),
            body: redactor.hide_in(self.body),
        }
    }
}

/// What the fetches of all tools of a host have in common.
pub struct Fetcher {
    /// Made with the first fetch: its list of the web's roots takes longer to read than a server to start.
    client: OnceLock<Result<Client, String>>,
    rule: Arc<AddressRule>,
    config: FetchConfig,
}

impl Fetcher {
    /// What may be fetched.
    pub fn new(config: &FetchConfig) -> Self {
        let rule = Arc::new(AddressRule::new(config.addresses.clone()));
        Self { client: OnceLock::new(), rule, config: config.clone() }
    }

    fn client(&self) -> Result<&Client, CapabilityError> {
        let made = self.client.get_or_init(|| client(self.rule.clone(), Arc::default()));
        made.as_ref()
            .map_err(|reason| CapabilityError::new(CapabilityErrorCode::NotAvailable, reason.clone()))
    }

    /// The fetches of one tool, with what an operator has granted to it.
    pub fn for_tool(self: &Arc<Self>, metadata: &Metadata) -> Result<ToolFetcher, String> {
        let grants = self.config.grants.get(metadata.tool_id.as_str()).cloned().unwrap_or_default();
        let mut ports: Vec<u16> = grants.private_hosts.iter().map(PrivateHost::port).collect();
        ports.sort_unstable();
        ports.dedup();
        let opened = ports.into_iter().map(|port| {
            let hosts = Arc::new(OpenedHosts::on_port(port, &grants.private_hosts));
            Ok(OpenedPort { port, client: client(self.rule.clone(), hosts.clone())?, hosts })
        });
        Ok(ToolFetcher {
            shared: self.clone(),
            tool: metadata.tool_id.to_string(),
            network: metadata.network.iter().map(|host| host.to_ascii_lowercase()).collect(),
            secrets: ToolSecrets::new(metadata, &grants.secrets)?,
            opened: opened.collect::<Result<_, String>>()?,
        })
    }
}

fn client(rule: Arc<AddressRule>, opened: Arc<OpenedHosts>) -> Result<Client, String> {
    let builder = Client::builder()
        .redirect(Policy::none())
        // A proxy would dial for us, past the check of addresses.
        .no_proxy()
        .dns_resolver(Arc::new(CheckedNames { rule, opened }))
        .user_agent("quarterdeck");
    builder.build().map_err(|error| format!("the HTTP client cannot start: {error}"))
}

/// A port on which an operator has opened something to a tool. It has a client of its own, because the look-up of a name
/// does not know for which port it is made.
struct OpenedPort {
    port: u16,
    hosts: Arc<OpenedHosts>,
    client: Client,
}

/// Fetches for one tool. Its hosts are checked for each hop, each address when it is dialled.
pub struct ToolFetcher {
    shared: Arc<Fetcher>,
    tool: String,
    /// Hosts that may be reached, in lower case.
    network: Vec<String>,
    secrets: ToolSecrets,
    opened: Vec<OpenedPort>,
}

impl ToolFetcher {
    /// Fetches for a call. The caller's deadline bounds the time.
    pub(crate) async fn fetch(
        &self,
        request: FetchRequest,
        context: &dyn Context,
    ) -> Result<FetchResponse, FetchFailure> {
        let result = self.follow(request, context).await;
        match &self.secrets.redactor {
            None => result,
            Some(redactor) => result
                .map(|response| response.redacted(redactor))
                .map_err(|failure| failure.redacted(redactor)),
        }
    }

    async fn follow(
        &self,
        request: FetchRequest,
        context: &dyn Context,
    ) -> Result<FetchResponse, FetchFailure> {
        let session = &context.facts().session.id;
        let stand_in = self.shared.config.stand_in.as_ref().and_then(|known| known.for_session(session));
        let mut hop = Hop {
            url: Url::parse(&request.url)
                .map_err(|error| invalid(format!("the URL is malformed: {error}")))?,
            method: Method::from_bytes(request.method.as_bytes())
                .map_err(|_| invalid("the method is malformed"))?,
            headers: headers_of(&request.headers)?,
            body: request.body,
            has_left_its_origin: false,
        };
        self.check(&hop.url)?;
        self.secrets.check_places(&hop)?;
        if stand_in.is_none() {
            self.check_address(&hop.url)?;
            self.secrets.check_configured(&hop.url, self.is_opened(&hop.url))?;
        }
        for _ in 0..=MAX_REDIRECTS {
            let response = match &stand_in {
                Some(answers) => self.stand_in_response(answers.as_ref(), &hop)?,
                None => self.send(&hop, context).await?,
            };
            let Some(next) = redirect::target(&hop.url, &response)? else {
                return self.read(hop.url, response).await;
            };
            self.check_redirect(&hop.url, &next)?;
            hop.follow(response.status(), next);
        }
        Err(CapabilityError::new(CapabilityErrorCode::NotAvailable, "too many redirects").into())
    }

    async fn send(&self, hop: &Hop, context: &dyn Context) -> Result<Response, FetchFailure> {
        let client = match self.opened_port(&hop.url) {
            Some(opened) => &opened.client,
            None => self.shared.client()?,
        };
        let (url, mut headers, has_secret) = self.secrets.add_to(hop, self.is_opened(&hop.url));
        add_trace_parent(&mut headers, context);
        let mut sending = client.request(hop.method.clone(), url).headers(headers);
        if let Some(body) = &hop.body {
            sending = sending.body(body.clone());
        }
        let mut change = SentChange { context, is_sent: !hop.method.is_safe() };
        let response = sending.send().await.map_err(|error| {
            change.is_sent &= !error.is_connect();
            self.broken(&hop.url, &error)
        })?;
        let encoding = response.headers().get(CONTENT_ENCODING);
        if has_secret && encoding.is_some_and(|encoding| encoding != "identity") {
            let message =
                "the answer is compressed, so the host cannot make sure that it does not repeat a secret";
            return Err(CapabilityError::new(CapabilityErrorCode::NotAvailable, message).into());
        }
        Ok(response)
    }

    fn broken(&self, url: &Url, error: &reqwest::Error) -> FetchFailure {
        let (host, port) = (host_of(url), url.port_or_known_default().unwrap_or_default());
        FetchFailure::of_sending(&Destination { tool: &self.tool, host: &host, port }, error)
    }

    fn stand_in_response(&self, answers: &dyn FetchAnswers, hop: &Hop) -> Result<Response, FetchFailure> {
        let failed = |message: String| CapabilityError::new(CapabilityErrorCode::NotAvailable, message);
        match answers.answer(hop.method.as_str(), hop.url.as_str()) {
            StandInAnswer::Response { status, headers, body } => {
                let mut response = http::Response::builder().status(status);
                for (name, value) in headers {
                    response = response.header(name, value);
                }
                let response = response
                    .body(body)
                    .map_err(|error| failed(format!("the recorded answer is broken: {error}")))?;
                Ok(response.into())
            }
            StandInAnswer::Unreachable => {
                Err(failed(format!("{} cannot be reached", host_of(&hop.url))).into())
            }
            StandInAnswer::Unknown(message) => Err(failed(message).into()),
        }
    }

    fn opened_port(&self, url: &Url) -> Option<&OpenedPort> {
        let port = url.port_or_known_default();
        self.opened.iter().find(|opened| Some(opened.port) == port)
    }

    /// Whether an operator has opened the host and port of a URL by name.
    fn is_opened(&self, url: &Url) -> bool {
        self.opened_port(url).is_some_and(|opened| match literal_in(url) {
            Some(address) => opened.hosts.has_address(address),
            None => opened.hosts.has_name(&host_of(url)),
        })
    }

    /// What can be known of a first request before a name is looked up.
    fn check(&self, url: &Url) -> Result<(), FetchFailure> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid(format!("fetch speaks http and https, not {}", url.scheme())).into());
        }
        if has_credentials(url) {
            let message =
                "a URL that is fetched has no user name and no password; send an Authorization header";
            return Err(invalid(message).into());
        }
        let host = host_of(url);
        if !self.network.contains(&host) {
            return Err(CapabilityError::not_declared(&format!("\"network\": [\"{host}\"]")).into());
        }
        Ok(())
    }

    /// An address in the URL is dialled without a look-up, so the look-up's check would not see it.
    fn check_address(&self, url: &Url) -> Result<(), FetchFailure> {
        self.check_literal(url).map_err(|refusal| {
            let tool = &self.tool;
            let message = format!(
                "this address may not be reached: handlers reach the public internet, and what an operator opens with \
                 `private_hosts` under [tools.{tool}]"
            );
            FetchFailure::new(refused(message), format!("fetch refused: {refusal}"))
        })
    }

    fn check_literal(&self, url: &Url) -> Result<(), Refusal> {
        match literal_in(url) {
            Some(address) if !self.is_opened(url) => self.shared.rule.check(address),
            _ => Ok(()),
        }
    }

    /// The same for where a server sends us. What it says there is not the handler's to know: a declared host may
    /// lie at the edge of a network whose names and addresses are private.
    fn check_redirect(&self, from: &Url, to: &Url) -> Result<(), FetchFailure> {
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
        if let Err(refusal) = self.check_literal(to) {
            return refuse("to where handlers may not go", &refusal.to_string());
        }
        if !self.network.contains(&host_of(to)) {
            return refuse(
                "to a host that `network` does not name; the log has it",
                "which `network` does not name",
            );
        }
        let repeats = self.secrets.redactor.as_ref().is_some_and(|redactor| redactor.is_in(to.as_str()));
        if repeats && from.origin() != to.origin() {
            return refuse("elsewhere and repeats a secret in the address", "with a secret in the address");
        }
        Ok(())
    }

    async fn read(&self, url: Url, mut response: Response) -> Result<FetchResponse, FetchFailure> {
        let max_bytes = self.shared.config.max_response_bytes;
        let too_large = || {
            let message = format!("the response is larger than {max_bytes} bytes");
            FetchFailure::from(CapabilityError::new(CapabilityErrorCode::NotAvailable, message))
        };
        let announced =
            response.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if announced.is_some_and(|length: u64| length > max_bytes as u64) {
            return Err(too_large());
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.broken(&url, &error))? {
            if body.len() + chunk.len() > max_bytes {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers =
            response.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
        Ok(FetchResponse { status: response.status(), url: url.into(), headers, body })
    }
}

/// A request that may change something where it goes. It has, as far as can be known, unless nothing was connected to; also
/// when the handler does not wait for the answer.
struct SentChange<'a> {
    context: &'a dyn Context,
    is_sent: bool,
}

impl Drop for SentChange<'_> {
    fn drop(&mut self) {
        if self.is_sent {
            self.context.mark_outside_effect();
        }
    }
}

/// Lets the service that is asked go on with the trace of the call.
fn add_trace_parent(headers: &mut HeaderMap, context: &dyn Context) {
    let Some(span) = context.span() else { return };
    if !headers.contains_key("traceparent")
        && let Ok(value) = HeaderValue::from_str(&span.to_traceparent())
    {
        headers.insert("traceparent", value);
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
