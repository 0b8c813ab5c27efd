//! The address of a live model, and how to connect to it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{LiveConnecting, LiveConnection, LiveError};
use quarterdeck_websocket::{Limits, upgrade};
use tokio::time::timeout;
use url::Url;

use super::{Dialer, ErrorContext, ProviderSocket, TcpDialer};
use crate::endpoint::{address, is_this_machine, secret_header};
use crate::{ConfigError, Secret};

/// For what a provider sends.
const LIMITS: Limits = Limits { max_message_bytes: 8 << 20 };

#[derive(Clone)]
pub(crate) struct LiveEndpoint {
    pub(crate) errors: ErrorContext,
    url: Url,
    /// The header that holds the key.
    header: (&'static str, Secret),
    dialer: Arc<dyn Dialer>,
}

impl fmt::Debug for LiveEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveEndpoint").field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}

pub(crate) struct Settings<'a> {
    pub(crate) provider: &'static str,
    pub(crate) model: &'a str,
    pub(crate) base_url: &'a str,
    /// What follows the base URL, with its query.
    pub(crate) path: &'a str,
    pub(crate) key: &'a Secret,
    /// The header that holds the key, and the prefix of its value.
    pub(crate) header: (&'static str, &'static str),
}

impl LiveEndpoint {
    pub(crate) fn new(settings: &Settings<'_>) -> Result<Self, ConfigError> {
        let Settings { provider, model, base_url, path, key, header: (header, prefix) } = *settings;
        if key.is_empty() {
            return Err(ConfigError::NoKey { provider });
        }
        if model.is_empty() || model.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(ConfigError::Model { provider });
        }
        let value = Secret::new(format!("{prefix}{}", key.expose()));
        secret_header(provider, value.expose())?;
        let url = address(provider, &http_scheme(base_url), path)?;
        if url.scheme() == "http" && !is_this_machine(&url) {
            tracing::warn!(provider, "the key travels unencrypted");
        }
        let errors = ErrorContext::new(format!("{provider}/{model}"), key.clone());
        Ok(Self { errors, url, header: (header, value), dialer: Arc::new(TcpDialer::default()) })
    }

    pub(crate) fn with_dialer(self, dialer: Arc<dyn Dialer>) -> Self {
        Self { dialer, ..self }
    }

    /// To be called within a time limit.
    pub(crate) async fn connect(self) -> Result<ProviderSocket, LiveError> {
        let stream = self.dialer.dial(&self.url).await.map_err(|error| self.errors.unreachable(&error))?;
        let host = match (self.url.host_str().unwrap_or_default(), self.url.port()) {
            (host, Some(port)) => format!("{host}:{port}"),
            (host, None) => host.to_owned(),
        };
        let target = match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        };
        let (name, value) = &self.header;
        let headers =
            [(*name, value.expose()), ("user-agent", concat!("quarterdeck/", env!("CARGO_PKG_VERSION")))];
        let socket = upgrade(stream, &host, &target, &headers, LIMITS)
            .await
            .map_err(|error| self.errors.upgrade_failed(&error))?;
        Ok(ProviderSocket::new(socket, self.errors))
    }
}

/// Opens a connection within a time limit.
pub(crate) fn connect_within<C: LiveConnection + 'static>(
    limit: Duration,
    errors: ErrorContext,
    connecting: impl Future<Output = Result<C, LiveError>> + Send + 'static,
) -> LiveConnecting {
    Box::pin(async move {
        match timeout(limit, connecting).await {
            Ok(Ok(connection)) => Ok(Box::new(connection) as Box<dyn LiveConnection>),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(errors.connect_timeout(limit)),
        }
    })
}

/// The same address with an HTTP scheme.
fn http_scheme(base_url: &str) -> String {
    let base_url = base_url.trim();
    match base_url.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("ws") => format!("http://{rest}"),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("wss") => format!("https://{rest}"),
        _ => base_url.to_owned(),
    }
}
