//! Whatever stands in `X-Forwarded-For`: what a client writes is never believed over what a trusted proxy has seen, and
//! nothing makes a request that came through a proxy look like one of this machine.
#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use libfuzzer_sys::fuzz_target;
use quarterdeck_server::{Source, TrustedProxies};

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const SEEN: &[u8] = b"203.0.113.7";

fuzz_target!(|bytes: &[u8]| {
    let networks = ["10.0.0.0/8", "2001:db8::/32"].map(|network| network.parse().expect("it is a network"));
    let trusted = TrustedProxies { loopback: true, networks: networks.to_vec() };
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();

    let source = Source::find(PEER, lines.iter().copied(), &trusted);
    assert!(!source.is_direct);
    assert_eq!(source.address, source.address.to_canonical());
    // One line with commas is the same list as several lines.
    let joined = lines.join(&b","[..]);
    assert_eq!(source, Source::find(PEER, std::iter::once(joined.as_slice()), &trusted));

    // Once our own proxy has added whom it has seen, nothing before that counts.
    let seen: IpAddr = "203.0.113.7".parse().expect("it is an address");
    let with_seen = lines.iter().copied().chain([SEEN]).collect::<Vec<_>>();
    assert_eq!(Source::find(PEER, with_seen.into_iter(), &trusted).address, seen);
    let appended = [&joined[..], b", ", SEEN].concat();
    assert_eq!(Source::find(PEER, std::iter::once(appended.as_slice()), &trusted).address, seen);

    // A peer that is not trusted speaks for no client.
    let stranger: IpAddr = "198.51.100.9".parse().expect("it is an address");
    assert_eq!(Source::find(stranger, lines.into_iter(), &trusted).address, stranger);
});
