//! The server that messages are passed on to.

use anyhow::{Context, bail, ensure};
use quarterdeck_transports::{Secret, is_loopback_url};
use url::Url;

use crate::environment;

const DEFAULT_PATH: &str = "/mcp";

#[derive(Debug, Clone)]
pub(crate) struct ProxyTarget {
    pub(super) url: Url,
    pub(super) key: Option<Secret>,
}

impl ProxyTarget {
    /// The server at an address, and its key in the variable of the environment that is named.
    pub(crate) fn new(url: &str, key_env: Option<&str>) -> anyhow::Result<Self> {
        let key = key_env
            .map(|name| {
                let key = environment::named(name).map(Secret::from).filter(|key| !key.is_empty());
                key.with_context(|| {
                    format!("{name} is not set\nhelp: set it to the key, or leave `--key-env` away")
                })
            })
            .transpose()?;
        Self::with_key(url, key)
    }

    fn with_key(text: &str, key: Option<Secret>) -> anyhow::Result<Self> {
        let help = "help: give an address such as http://127.0.0.1:8080";
        let mut url = Url::parse(text).with_context(|| format!("{text:?} is not a URL\n{help}"))?;
        ensure!(matches!(url.scheme(), "http" | "https"), "{text:?} is not an address of the web\n{help}");
        if !url.username().is_empty() || url.password().is_some() {
            bail!(
                "a URL with a password is shown to everyone on this machine\nhelp: name the variable that holds the key with `--key-env`"
            );
        }
        if url.path() == "/" {
            url.set_path(DEFAULT_PATH);
        }
        url.set_fragment(None);
        if key.is_some() && url.scheme() == "http" && !is_loopback_url(url.as_str()) {
            bail!(
                "the key would travel unencrypted to {}\nhelp: use https",
                url.host_str().unwrap_or_default()
            );
        }
        Ok(Self { url, key })
    }

    /// The address for messages.
    pub(super) fn shown(&self) -> String {
        self.url.origin().ascii_serialization()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_path_means_the_endpoint_of_the_protocol() {
        let url = |text: &str| ProxyTarget::with_key(text, None).unwrap().url.to_string();
        assert_eq!(url("http://127.0.0.1:8080"), "http://127.0.0.1:8080/mcp");
        assert_eq!(url("https://deck.example/"), "https://deck.example/mcp");
        assert_eq!(url("https://deck.example/team/mcp#x"), "https://deck.example/team/mcp");
    }

    #[test]
    fn a_key_does_not_travel_unencrypted_and_never_in_the_address() {
        let key = || Some(Secret::new("secret-key"));
        assert!(ProxyTarget::with_key("https://deck.example", key()).is_ok());
        assert!(ProxyTarget::with_key("http://localhost:8080", key()).is_ok());
        assert!(ProxyTarget::with_key("http://deck.example", None).is_ok());
        for (url, key) in [
            ("http://deck.example", key()),
            ("http://127.0.0.1.evil.example", key()),
            ("https://me:word@deck.example", None),
            ("file:///etc/passwd", None),
            ("127.0.0.1:8080", None),
        ] {
            assert!(ProxyTarget::with_key(url, key).is_err(), "{url}");
        }
    }
}
