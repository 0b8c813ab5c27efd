//! The source address of a request behind proxies.
//!
//! Every proxy appends the address it saw to `X-Forwarded-For`. Only entries of trusted proxies count, so the list is
//! read from its end up to the first address that is not a trusted proxy: everything before it is the client's claim.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::network::Network;

/// Proxies in a row.
pub const MAX_HOPS: usize = 16;
/// The longest form of an address: brackets, the longest IPv6 address, and a port.
pub const MAX_HOP_BYTES: usize = 53;

/// The proxies whose `X-Forwarded-For` is trusted.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies {
    /// Whether proxies on this machine are trusted.
    pub loopback: bool,
    /// The networks of other trusted proxies.
    pub networks: Vec<Network>,
}

/// The source of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// Canonical: an IPv4-mapped IPv6 address is IPv4.
    pub address: IpAddr,
    /// Whether it is the peer of the connection and no header names another client.
    pub is_direct: bool,
}

impl TrustedProxies {
    /// Whether no proxy is trusted.
    pub fn is_empty(&self) -> bool {
        !self.loopback && self.networks.is_empty()
    }

    /// Whether an address is a trusted proxy's.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        (self.loopback && address.is_loopback())
            || self.networks.iter().any(|network| network.contains(address))
    }
}

impl Source {
    /// The source of a request from this peer with these lines of `X-Forwarded-For`, in their order.
    ///
    /// A malformed hop ends the walk at the proxy that sent it, whose address is then rate-limited like any other.
    pub fn find<'a>(
        peer: IpAddr,
        lines: impl DoubleEndedIterator<Item = &'a [u8]>,
        trusted: &TrustedProxies,
    ) -> Self {
        let mut address = peer.to_canonical();
        if !trusted.contains(address) {
            // An untrusted proxy may still be one, so its clients are not this machine.
            return Self { address, is_direct: lines.count() == 0 };
        }
        let hops = lines.rev().flat_map(|line| line.rsplit(|byte| *byte == b','));
        for hop in hops.take(MAX_HOPS) {
            let Some(previous) = hop_address(hop) else { break };
            address = previous;
            if !trusted.contains(address) {
                break;
            }
        }
        Self { address, is_direct: false }
    }
}

/// The address of one hop: `ip`, `ip:port`, `[v6]` or `[v6]:port`.
fn hop_address(hop: &[u8]) -> Option<IpAddr> {
    let hop = hop.trim_ascii();
    if hop.len() > MAX_HOP_BYTES {
        return None;
    }
    let hop = std::str::from_utf8(hop).ok()?;
    let bare = hop.strip_prefix('[').and_then(|hop| hop.strip_suffix(']'));
    let address = match bare {
        Some(bare) => bare.parse::<Ipv6Addr>().ok().map(IpAddr::from),
        None => hop.parse().ok().or_else(|| with_port(hop)),
    };
    Some(address?.to_canonical())
}

fn with_port(hop: &str) -> Option<IpAddr> {
    if hop.starts_with('[') {
        // A scope has meaning on the proxy's machine only.
        let address = hop.parse::<SocketAddr>().ok().filter(|_| !hop.contains('%'))?;
        return Some(address.ip());
    }
    let (address, port) = hop.split_once(':')?;
    let is_port = (1..=5).contains(&port.len()) && port.bytes().all(|letter| letter.is_ascii_digit());
    address.parse::<Ipv4Addr>().ok().filter(|_| is_port && port.parse::<u16>().is_ok()).map(IpAddr::from)
}

#[cfg(test)]
mod tests;
