//! Hosts beyond the public internet that an operator opens.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ::url::Host;

/// One port of a host that an operator opens to a tool: `localhost:8080`, `vault.internal:8200`, `10.0.0.5:443`,
/// `[fd00::5]:443`.
///
/// An address opens that address, whatever name of `network` leads to it. `localhost` opens loopback addresses, and any
/// other name the addresses of private networks that it has when it is dialled: a name that suddenly leads to loopback, to
/// a cloud's metadata or to the public internet is not the host that was opened.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PrivateHost {
    pub(crate) host: PrivateName,
    pub(crate) port: u16,
}

impl PrivateHost {
    /// The port that is opened.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The name in lower case, unless it is an address.
    pub fn name(&self) -> Option<&str> {
        match &self.host {
            PrivateName::Name(name) => Some(name),
            PrivateName::Address(_) => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PrivateName {
    /// In lower case.
    Name(String),
    Address(IpAddr),
}

/// Not a host with a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidPrivateHost;

impl fmt::Display for InvalidPrivateHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a host with a port, such as localhost:8080, vault.internal:8200 or 10.0.0.5:443")
    }
}

impl std::error::Error for InvalidPrivateHost {}

impl FromStr for PrivateHost {
    type Err = InvalidPrivateHost;

    fn from_str(text: &str) -> Result<Self, InvalidPrivateHost> {
        let (host, port) = text.rsplit_once(':').ok_or(InvalidPrivateHost)?;
        let is_plain = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port: u16 = port.parse().ok().filter(|port| *port > 0 && is_plain).ok_or(InvalidPrivateHost)?;
        // The parser of URLs knows every way to write an address; a name that is one in disguise is opened as such.
        let host = match Host::parse(host).map_err(|_| InvalidPrivateHost)? {
            Host::Ipv4(address) => PrivateName::Address(address.into()),
            Host::Ipv6(address) => PrivateName::Address(IpAddr::from(address).to_canonical()),
            Host::Domain(name) if name.contains('*') => return Err(InvalidPrivateHost),
            Host::Domain(name) => PrivateName::Name(name.trim_end_matches('.').to_ascii_lowercase()),
        };
        Ok(Self { host, port })
    }
}

impl fmt::Display for PrivateHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            PrivateName::Name(name) => write!(f, "{name}:{}", self.port),
            PrivateName::Address(IpAddr::V4(address)) => write!(f, "{address}:{}", self.port),
            PrivateName::Address(IpAddr::V6(address)) => write!(f, "[{address}]:{}", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_host_is_a_name_or_an_address_with_a_port() {
        for (text, shown) in [
            ("localhost:8080", "localhost:8080"),
            ("Vault.Internal.:8200", "vault.internal:8200"),
            ("10.0.0.5:443", "10.0.0.5:443"),
            ("0x7f.1:80", "127.0.0.1:80"),
            ("[fd00::5]:443", "[fd00::5]:443"),
            ("[::ffff:10.0.0.5]:443", "10.0.0.5:443"),
        ] {
            assert_eq!(text.parse::<PrivateHost>().unwrap().to_string(), shown);
        }
        for bad in [
            "localhost",
            ":80",
            "localhost:",
            "localhost:0",
            "localhost:65536",
            "a:+1",
            "http://a:80",
            "*.a:80",
            "fd00::5:443",
            "",
        ] {
            assert!(bad.parse::<PrivateHost>().is_err(), "{bad}");
        }
    }
}
