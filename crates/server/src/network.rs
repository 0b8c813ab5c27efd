//! Networks, and who owns an address.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// The prefix that identifies the owner of an IPv6 address; the rest can change with every connection.
const IPV6_OWNER_BITS: u32 = 64;

/// A network such as `10.0.0.0/8`, or a single address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

/// Not a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an address, nor a network such as 10.0.0.0/8 or 2001:db8::/32")]
pub struct NetworkError;

/// The owner of an address: an IPv4 address itself, or the /64 network of an IPv6 address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct AddressOwner(IpAddr);

impl Network {
    /// An IPv4-mapped IPv6 address counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                let beyond = 32_u32.saturating_sub(self.bits);
                shifted(u128::from(ours.to_bits()), beyond) == shifted(u128::from(theirs.to_bits()), beyond)
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => {
                let beyond = 128_u32.saturating_sub(self.bits);
                shifted(ours.to_bits(), beyond) == shifted(theirs.to_bits(), beyond)
            }
            _ => false,
        }
    }
}

fn shifted(bits: u128, by: u32) -> u128 {
    bits.checked_shr(by).unwrap_or(0)
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NetworkError)?;
        let max_bits = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) if bits.bytes().all(|letter| letter.is_ascii_digit()) => {
                bits.parse().ok().filter(|bits| *bits <= max_bits).ok_or(NetworkError)?
            }
            Some(_) => return Err(NetworkError),
            None => max_bits,
        };
        // Mapped addresses are compared as IPv4, so their networks are stored as IPv4.
        match address.to_canonical() {
            canonical if canonical == address => Ok(Self { address, bits }),
            canonical => {
                let bits = bits.checked_sub(96).ok_or(NetworkError)?;
                Ok(Self { address: canonical, bits })
            }
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl AddressOwner {
    pub(crate) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(address.into()),
            IpAddr::V6(address) => {
                let own = u128::MAX << (128 - IPV6_OWNER_BITS);
                Self(Ipv6Addr::from_bits(address.to_bits() & own).into())
            }
        }
    }
}

impl fmt::Display for AddressOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(network: &str, address: &str) -> bool {
        network.parse::<Network>().unwrap().contains(address.parse().unwrap())
    }

    #[test]
    fn a_network_contains_its_addresses_in_both_spellings() {
        assert!(contains("10.0.0.0/8", "10.255.1.2") && !contains("10.0.0.0/8", "11.0.0.0"));
        assert!(contains("10.1.2.3", "::ffff:10.1.2.3") && !contains("10.1.2.3", "10.1.2.4"));
        assert!(contains("::ffff:10.0.0.0/104", "10.9.9.9"));
        assert!(contains("2001:db8::/32", "2001:db8:ffff::1") && !contains("2001:db8::/32", "2001:db9::1"));
        assert!(contains("0.0.0.0/0", "203.0.113.7") && !contains("0.0.0.0/0", "2001:db8::1"));
        assert!(contains("::/0", "2001:db8::1"));
    }

    #[test]
    fn an_invalid_network_is_refused() {
        for bad in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "proxy",
            "::ffff:10.0.0.0/8",
        ] {
            assert_eq!(bad.parse::<Network>(), Err(NetworkError), "{bad}");
        }
    }

    #[test]
    fn an_owner_has_a_64_bit_network_of_ipv6_or_one_ipv4_address() {
        let owner = |address: &str| AddressOwner::of(address.parse().unwrap());
        assert_eq!(owner("2001:db8::1"), owner("2001:db8::ffff:1:2:3"));
        assert_ne!(owner("2001:db8::1"), owner("2001:db8:0:1::1"));
        assert_eq!(owner("::ffff:203.0.113.7"), owner("203.0.113.7"));
        assert_ne!(owner("203.0.113.7"), owner("203.0.113.8"));
        assert_eq!(owner("2001:db8::1").to_string(), "2001:db8::");
    }
}
