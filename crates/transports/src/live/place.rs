//! Where a live model is, and the way there.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quarterdeck_contracts::{LiveConnecting, LiveConnection, LiveError};
use quarterdeck_websocket::{Limits, upgrade};
use tokio::time::timeout;
use url::Url;

use super::{Dialer, Line, Tcp, Troubles};
use crate::endpoint::{address, is_this_machine, secret_header};
use crate::{ConfigError, Secret};

/// The largest message that a provider may send.
const LARGEST: Limits = Limits { message: 8 << 20 };

/// A live model's address, with all that is needed to get through.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) troubles: Troubles,
    url: Url,
    /// The header that holds the key.
    header: (&'static str, Secret),
    dialer: Arc<dyn Dialer>,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}

/// What a [`Place`] is made of.
pub(crate) struct Settings<'a> {
    pub(crate) provider: &'static str,
    pub(crate) model: &'a str,
    pub(crate) base_url: &'a str,
    /// What follows the base URL, with its query.
    pub(crate) path: &'a str,
    pub(crate) key: &'a Secret,
    /// The header that holds the key, and what stands before it there.
    pub(crate) header: (&'static str, &'static str),
}

impl Place {
    pub(crate) fn new(settings: &Settings<'_>) -> Result<Self, ConfigError> {
        let Settings { provider, model, base_url, path, key, header: (header, before) } = *settings;
        if key.is_empty() {
            return Err(ConfigError::NoKey { provider });
        }
        if model.is_empty() || model.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(ConfigError::Model { provider });
        }
        let value = Secret::new(format!("{before}{}", key.expose()));
        secret_header(provider, value.expose())?;
        let url = address(provider, &http(base_url), path)?;
        if url.scheme() == "http" && !is_this_machine(&url) {
            tracing::warn!(provider, "the key travels unencrypted");
        }
        let troubles = Troubles::new(format!("{provider}/{model}"), key.clone());
        Ok(Self { troubles, url, header: (header, value), dialer: Arc::new(Tcp::default()) })
    }

    pub(crate) fn dialled_by(self, dialer: Arc<dyn Dialer>) -> Self {
        Self { dialer, ..self }
    }

    /// Reaches the provider. To be called within a time limit.
    pub(crate) async fn reach(self) -> Result<Line, LiveError> {
        let stream = self.dialer.dial(&self.url).await.map_err(|error| self.troubles.unreachable(&error))?;
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
        let socket = upgrade(stream, &host, &target, &headers, LARGEST)
            .await
            .map_err(|error| self.troubles.no_upgrade(&error))?;
        Ok(Line::new(socket, self.troubles))
    }
}

/// Opens a connection within a time limit.
pub(crate) fn within<C: LiveConnection + 'static>(
    limit: Duration,
    troubles: Troubles,
    connecting: impl Future<Output = Result<C, LiveError>> + Send + 'static,
) -> LiveConnecting {
    Box::pin(async move {
        match timeout(limit, connecting).await {
            Ok(Ok(connection)) => Ok(Box::new(connection) as Box<dyn LiveConnection>),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(troubles.too_late(limit)),
        }
    })
}

/// The same address with the scheme that its sockets begin with.
fn http(base_url: &str) -> String {
    let base_url = base_url.trim();
    match base_url.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("ws") => format!("http://{rest}"),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("wss") => format!("https://{rest}"),
        _ => base_url.to_owned(),
    }
}
