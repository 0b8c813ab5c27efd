//! One MCP server elsewhere, as an operator configures it: how it is reached, with what, and within which limits.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use quarterdeck_outbound::{PrivateHost, SecretText};
use serde::Serialize;
use url::Url;

/// The name of a server: of its table in the configuration, and before its tools where they clash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ServerName(String);

impl ServerName {
    /// Leaves half of a tool's id to the tool.
    pub const MAX_LENGTH: usize = 32;

    /// Takes a text that is already a name.
    ///
    /// # Errors
    ///
    /// It is something else.
    pub fn parse(text: &str) -> Result<Self, InvalidServerName> {
        let is_name = text.starts_with(|first: char| first.is_ascii_lowercase())
            && text.len() <= Self::MAX_LENGTH
            && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'));
        if is_name { Ok(Self(text.to_owned())) } else { Err(InvalidServerName) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Not the name of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a server's name has lower-case letters, digits, `-` and `_`, begins with a letter, and has at most 32 characters"
)]
pub struct InvalidServerName;

/// One server.
#[derive(Debug, Clone, PartialEq)]
pub struct UpstreamConfig {
    pub name: ServerName,
    pub transport: UpstreamTransport,
    pub limits: UpstreamLimits,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum UpstreamTransport {
    /// A process of ours, over its standard input and output.
    Stdio(StdioConfig),
    /// Streamable HTTP.
    Http(HttpConfig),
}

/// A process. It is started with an empty environment but for `env`.
#[derive(Debug, Clone, PartialEq)]
pub struct StdioConfig {
    /// A program by its path, or by its name in our own `PATH`.
    pub command: String,
    pub args: Vec<String>,
    /// All that the process finds in its environment. A value may be a secret, so none is printed.
    pub env: BTreeMap<String, SecretText>,
    /// `None` is our own working directory.
    pub cwd: Option<PathBuf>,
}

/// A server at a URL.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpConfig {
    pub url: Url,
    /// Sent with every request, by their names in lower case. Never a header of one of our clients.
    pub headers: BTreeMap<String, SecretText>,
    pub oauth: Option<OAuthConfig>,
    /// Hosts beyond the public internet that an operator opens to this server.
    pub private_hosts: Vec<PrivateHost>,
}

/// OAuth 2.1 with client credentials: we are the client, and no user is involved.
#[derive(Debug, Clone, PartialEq)]
pub struct OAuthConfig {
    pub client_id: String,
    pub client_secret: SecretText,
    pub scopes: Vec<String>,
    /// Where tokens are issued. `None` asks the server's metadata (RFC 9728, then RFC 8414).
    pub token_url: Option<Url>,
}

/// What one server may cost us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpstreamLimits {
    /// From starting the process, or connecting, until the server has listed its tools.
    pub start_timeout: Duration,
    /// One message from the server.
    pub max_message_bytes: usize,
    /// How deeply a message may nest.
    pub max_depth: usize,
    /// Tools in all pages of `tools/list` together.
    pub max_tools: usize,
    /// Calls that the server works on at the same time; further ones wait within their own deadline.
    pub max_concurrent_calls: usize,
    /// The pause before the second start; every further one is twice as long.
    pub min_backoff: Duration,
    /// The longest pause between two starts.
    pub max_backoff: Duration,
    /// How long a process may take to end once it was asked to, before it is killed.
    pub stop_timeout: Duration,
}

impl Default for UpstreamLimits {
    fn default() -> Self {
        Self {
            start_timeout: Duration::from_secs(30),
            max_message_bytes: 4 * 1024 * 1024,
            max_depth: 64,
            max_tools: 512,
            max_concurrent_calls: 64,
            min_backoff: Duration::from_millis(500),
            max_backoff: Duration::from_secs(60),
            stop_timeout: Duration::from_secs(2),
        }
    }
}

impl UpstreamConfig {
    /// Where the server is, for people: the program's name, or the URL without what may be secret in it.
    pub fn address(&self) -> String {
        match &self.transport {
            UpstreamTransport::Stdio(stdio) => stdio.command.clone(),
            UpstreamTransport::Http(http) => {
                let mut url = http.url.clone();
                // These fail for URLs that can have none.
                let _ = url.set_username("");
                let _ = url.set_password(None);
                url.set_query(None);
                url.set_fragment(None);
                url.to_string()
            }
        }
    }
}

impl UpstreamTransport {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::Http(_) => "http",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_name_is_short_and_plain() {
        for name in ["time", "chrome-devtools", "a1_b"] {
            assert_eq!(ServerName::parse(name).unwrap().as_str(), name);
        }
        for wrong in ["", "Time", "1st", "-a", "a b", "a.b", "é", &"a".repeat(33)] {
            assert_eq!(ServerName::parse(wrong), Err(InvalidServerName), "{wrong}");
        }
    }

    #[test]
    fn nothing_secret_is_printed() {
        let http = HttpConfig {
            url: Url::parse("https://user:hunter2@mcp.example.com/mcp?key=hunter2#hunter2").unwrap(),
            headers: BTreeMap::from([("authorization".into(), SecretText::from("Bearer hunter2"))]),
            oauth: None,
            private_hosts: Vec::new(),
        };
        let config = UpstreamConfig {
            name: ServerName::parse("crm").unwrap(),
            transport: UpstreamTransport::Http(http),
            limits: UpstreamLimits::default(),
        };
        assert_eq!(config.address(), "https://mcp.example.com/mcp");
        let UpstreamTransport::Http(http) = &config.transport else { unreachable!() };
        assert!(!format!("{:?}", http.headers).contains("hunter2"));
    }
}
