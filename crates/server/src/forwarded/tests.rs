use proptest::prelude::*;

use super::*;

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn proxies() -> TrustedProxies {
    TrustedProxies { loopback: true, networks: vec!["10.0.0.0/8".parse().unwrap()] }
}

fn find(lines: &[&[u8]]) -> Source {
    Source::find(PEER, lines.iter().copied(), &proxies())
}

fn address(lines: &[&str]) -> String {
    let lines: Vec<_> = lines.iter().map(|line| line.as_bytes()).collect();
    find(&lines).address.to_string()
}

#[test]
fn every_form_of_an_address_is_parsed() {
    for (text, expected) in [
        ("203.0.113.7", "203.0.113.7"),
        (" 203.0.113.7\t", "203.0.113.7"),
        ("203.0.113.7:443", "203.0.113.7"),
        ("2001:db8::7", "2001:db8::7"),
        ("[2001:db8::7]", "2001:db8::7"),
        ("[2001:db8::7]:65535", "2001:db8::7"),
        ("2001:DB8:0:0::7", "2001:db8::7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("[::ffff:203.0.113.7]:1", "203.0.113.7"),
        ("[::ffff:cb00:7107]", "203.0.113.7"),
    ] {
        assert_eq!(address(&[text]), expected, "{text}");
        assert_eq!(address(&[&format!("198.51.100.1, {text}")]), expected, "{text}");
    }
}

#[test]
fn a_malformed_hop_leaves_the_last_valid_one() {
    let long = "1".repeat(5_000);
    for garbage in [
        "",
        " ",
        "unknown",
        "_hidden",
        "secret",
        "localhost",
        "203.0.113",
        "203.0.113.7:",
        "203.0.113.7:x",
        "203.0.113.7:65536",
        "203.0.113.7:+1",
        "203.0.113.7 203.0.113.8",
        "0313.0.0161.7",
        "0xcb007107",
        "[203.0.113.7]",
        "[2001:db8::7",
        "2001:db8::7]",
        "[2001:db8::7]x",
        "[2001:db8::7]:",
        "[fe80::1%1]:80",
        "fe80::1%eth0",
        "\"203.0.113.7\"",
        "for=203.0.113.7",
        "203.0.113.7;proto=https",
        "\u{e9}",
        &long,
    ] {
        let source = find(&[b"198.51.100.1", garbage.as_bytes()]);
        assert_eq!(source, Source { address: PEER, is_direct: false }, "{garbage}");
        assert_eq!(address(&[&format!("198.51.100.1, {garbage}, 10.1.1.1")]), "10.1.1.1", "{garbage}");
    }
    assert_eq!(find(&[b"203.0.113.7\xff"]).address, PEER);
}

#[test]
fn only_trusted_proxies_are_skipped() {
    assert_eq!(address(&["203.0.113.7, 10.0.0.1, 10.0.0.2"]), "203.0.113.7");
    assert_eq!(address(&["203.0.113.7", "10.0.0.1", "::ffff:10.0.0.2"]), "203.0.113.7", "over several lines");
    assert_eq!(address(&["6.6.6.6, 203.0.113.7, 10.0.0.2"]), "203.0.113.7", "a client's own claim");
    assert_eq!(address(&["6.6.6.6, 127.0.0.1, 203.0.113.7"]), "203.0.113.7");
    assert_eq!(address(&["10.0.0.1"]), "10.0.0.1", "a proxy's own request");
    assert_eq!(address(&[]), "127.0.0.1");
    let many = vec!["10.0.0.9"; 3 * MAX_HOPS].join(",");
    assert_eq!(address(&[&format!("203.0.113.7, {many}")]), "10.0.0.9");
}

#[test]
fn an_untrusted_peer_is_the_source_itself() {
    let none = TrustedProxies::default();
    let ask = |peer: &str, lines: &[&[u8]]| Source::find(peer.parse().unwrap(), lines.iter().copied(), &none);
    let peer: IpAddr = "198.51.100.1".parse().unwrap();
    assert_eq!(ask("198.51.100.1", &[]), Source { address: peer, is_direct: true });
    assert_eq!(ask("::ffff:198.51.100.1", &[b"127.0.0.1"]), Source { address: peer, is_direct: false });
    assert_eq!(ask("127.0.0.1", &[b"203.0.113.7"]), Source { address: PEER, is_direct: false });
}

proptest! {
    /// Entries that a client sends are ignored, in one line or several.
    #[test]
    fn a_client_cannot_choose_its_address(
        claimed in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 0..6),
        seen in any::<u32>().prop_map(Ipv4Addr::from),
    ) {
        prop_assume!(!proxies().contains(seen.into()));
        let mut lines = claimed;
        lines.push(seen.to_string().into_bytes());
        let source = Source::find(PEER, lines.iter().map(Vec::as_slice), &proxies());
        prop_assert_eq!(source, Source { address: seen.into(), is_direct: false });
        let joined = lines.join(&b", "[..]);
        let source = Source::find(PEER, [joined.as_slice()].into_iter(), &proxies());
        prop_assert_eq!(source, Source { address: seen.into(), is_direct: false });
    }

    /// No list makes a proxy's client look like a direct one.
    #[test]
    fn a_proxied_request_is_never_direct(
        lines in proptest::collection::vec("[0-9a-f:.,\\[\\] %_x]{0,60}", 0..5),
    ) {
        let source = Source::find(PEER, lines.iter().map(|line| line.as_bytes()), &proxies());
        prop_assert!(!source.is_direct);
        prop_assert_eq!(source.address, source.address.to_canonical());
    }
}
