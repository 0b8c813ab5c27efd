//! Which addresses may be dialled for others.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use url::{Host, Url};

/// Which addresses may be dialled.
#[derive(Clone, Default)]
pub enum Addresses {
    /// Those of the public internet alone.
    #[default]
    Public,
    /// Private and loopback ones too.
    Any,
    /// Those that a rule admits.
    Where(Arc<dyn Fn(IpAddr) -> bool + Send + Sync>),
}

impl fmt::Debug for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "Public",
            Self::Any => "Any",
            Self::Where(_) => "Where(..)",
        })
    }
}

/// Decides by a configuration.
pub struct AddressRule(Addresses);

/// An address that may not be dialled. The operator reads it in the log; a handler never does.
#[derive(Debug, Clone, Copy)]
pub enum Refusal {
    /// It is private, and nothing is opened there.
    NotPublic(IpAddr),
    /// A name that an operator opened leads to it, and it is not the kind of address that was opened.
    NotOpened(IpAddr),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPublic(address) => write!(f, "the address {address} is not on the public internet"),
            Self::NotOpened(address) => {
                write!(f, "`private_hosts` does not open the address {address} by that name")
            }
        }
    }
}

impl std::error::Error for Refusal {}

impl AddressRule {
    /// The rule of a configuration.
    pub fn new(addresses: Addresses) -> Self {
        Self(addresses)
    }

    /// Refuses an address that may not be dialled.
    pub fn check(&self, address: IpAddr) -> Result<(), Refusal> {
        let allowed = match &self.0 {
            Addresses::Any => true,
            Addresses::Public => is_public(address),
            Addresses::Where(rule) => rule(address),
        };
        if allowed { Ok(()) } else { Err(Refusal::NotPublic(address)) }
    }
}

/// The address that stands in a URL in place of a name. Parsing has brought octal, hex and short forms into the usual
/// one.
pub fn literal_in(url: &Url) -> Option<IpAddr> {
    match url.host() {
        Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
        Some(Host::Domain(_)) | None => None,
    }
}

/// Whether an address is for networks of one's own: neither public, nor this machine, nor this link.
pub(crate) fn is_private_use(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [a, b, ..] = address.octets();
            address.is_private() || (a == 100 && (64..=127).contains(&b))
        }
        IpAddr::V6(address) => address.is_unique_local(),
    }
}

/// Whether an address belongs to the public internet, looking through the forms that carry an IPv4 address inside.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match inner_v4(address) {
            Some(inner) => is_public_v4(inner),
            None => is_public_v6(address),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = match (a, b, c) {
        (0 | 10 | 127, ..) => true, // this network, private, loopback
        (100, 64..=127, _) => true, // carrier-grade NAT
        (169, 254, _) => true,      // link-local, cloud metadata
        (172, 16..=31, _) => true,  // private
        (192, 0, 0 | 2) => true,    // protocol assignments, documentation
        (192, 88, 99) => true,      // 6to4 relays
        (192, 168, _) => true,      // private
        (198, 18 | 19, _) => true,  // benchmarks
        (198, 51, 100) => true,     // documentation
        (203, 0, 113) => true,      // documentation
        (224..=255, ..) => true,    // multicast, reserved, broadcast
        _ => false,
    };
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    // Only 2000::/3 is given out for the public internet; what is special inside it is listed.
    let [a, b, ..] = address.segments();
    let special = match (a, b) {
        (0x2001, 0x0000..=0x01ff) => true, // protocol assignments, Teredo among them
        (0x2001, 0x0db8) => true,          // documentation
        (0x3fff, 0x0000..=0x0fff) => true, // documentation
        _ => false,
    };
    a & 0xe000 == 0x2000 && !special
}

/// The IPv4 address that a mapped, compatible, NAT64 or 6to4 address stands for.
fn inner_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let from = |high: u16, low: u16| Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0xffff) => from(g, h),
        (0, 0, 0, 0, 0xffff, 0) => from(g, h),
        (0, 0, 0, 0, 0, 0) => from(g, h),
        (0x64, 0xff9b, 0, 0, 0, 0) => from(g, h),
        (0x2002, ..) => from(b, c),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_public_internet_pass() {
        let public = [
            "1.1.1.1",
            "93.184.216.34",
            "172.15.0.1",
            "172.32.0.1",
            "100.63.255.255",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ];
        let private = [
            "0.0.0.0",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::1",
            "2002:a00:1::",
            "2001::1",
            "2001:db8::1",
            "3fff::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "100::1",
            "5f00::1",
        ];
        for address in public {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in private {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn every_way_to_write_loopback_is_loopback() {
        let rule = AddressRule::new(Addresses::Public);
        for host in [
            "127.0.0.1",
            "0177.0.0.1",
            "0x7f.0.0.1",
            "0x7f000001",
            "2130706433",
            "127.1",
            "017700000001",
            "127.0.0.1.",
            "[::1]",
            "[::ffff:7f00:1]",
            "[0:0:0:0:0:ffff:127.0.0.1]",
            "1２7.0.0.1",
        ] {
            let url = Url::parse(&format!("http://{host}/")).unwrap();
            assert!(rule.check(literal_in(&url).unwrap()).is_err(), "{host} is {url}");
        }
        assert_eq!(literal_in(&Url::parse("http://example.com/").unwrap()), None);
    }
}
