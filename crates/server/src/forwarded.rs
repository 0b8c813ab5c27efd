//! Where a request comes from, when proxies stand in between.
//!
//! `X-Forwarded-For` is a list to which every proxy adds whom it has seen. Only what a trusted proxy has added is
//! believed, so it is read from its end, and no further than to the first address that is no trusted proxy: what stands
//! before that is what the client says of itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::network::Network;

/// How many proxies may stand in a row.
pub const MAX_HOPS: usize = 16;
/// The longest spelling of an address: brackets, the longest IPv6 address, and a port.
pub const MAX_HOP_BYTES: usize = 53;

/// The proxies whose word is believed.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies {
    /// Those on this machine.
    pub loopback: bool,
    /// Those in these networks.
    pub networks: Vec<Network>,
}

/// Where a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// The address, an IPv4 address never in the clothes of IPv6.
    pub address: IpAddr,
    /// Whether it is the very peer of the connection, and nothing says that another client stands behind it.
    pub is_direct: bool,
}

impl TrustedProxies {
    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        !self.loopback && self.networks.is_empty()
    }

    /// Whether an address is one of theirs.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        (self.loopback && address.is_loopback())
            || self.networks.iter().any(|network| network.contains(address))
    }
}

impl Source {
    /// The source of a request from this peer with these lines of `X-Forwarded-For`, in their order.
    ///
    /// A hop that cannot be read ends the walk at the proxy that has said it: its address is limited like any other.
    pub fn find<'a>(
        peer: IpAddr,
        lines: impl DoubleEndedIterator<Item = &'a [u8]>,
        trusted: &TrustedProxies,
    ) -> Self {
        let mut address = peer.to_canonical();
        if !trusted.contains(address) {
            // A proxy that is not trusted may still be one, and then its clients are not this machine.
            return Self { address, is_direct: lines.count() == 0 };
        }
        let hops = lines.rev().flat_map(|line| line.rsplit(|byte| *byte == b','));
        for hop in hops.take(MAX_HOPS) {
            let Some(before) = hop_address(hop) else { break };
            address = before;
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
        // A scope means something on the proxy's machine, and nothing on ours.
        let address = hop.parse::<SocketAddr>().ok().filter(|_| !hop.contains('%'))?;
        return Some(address.ip());
    }
    let (address, port) = hop.split_once(':')?;
    let is_port = (1..=5).contains(&port.len()) && port.bytes().all(|letter| letter.is_ascii_digit());
    address.parse::<Ipv4Addr>().ok().filter(|_| is_port && port.parse::<u16>().is_ok()).map(IpAddr::from)
}

#[cfg(test)]
mod tests;
