//! Mail addresses, host names and IP addresses.

use super::scan::is_label;

/// A dotted atom at a dotted domain; no quoting, no address literals.
pub(super) fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else { return false };
    let is_atom = |atom: &str| {
        !atom.is_empty()
            && atom.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~-".contains(&byte))
    };
    local.split('.').all(is_atom) && domain.contains('.') && domain.split('.').all(is_label)
}

/// Labels of at most 63 characters, 253 in all; a final dot is allowed on top.
pub(super) fn is_hostname(text: &str) -> bool {
    let name = text.strip_suffix('.').unwrap_or(text);
    name.len() <= 253 && name.split('.').all(|label| label.len() <= 63 && is_label(label))
}

pub(super) fn is_ipv4(text: &str) -> bool {
    dotted(text, |octet| octet == "0" || !octet.starts_with('0'))
}

pub(super) fn is_ipv6(text: &str) -> bool {
    ipv6(text, is_ipv4)
}

/// As URIs have it: an embedded IPv4 address may have leading zeros there.
pub(super) fn is_ipv6_in_uri(text: &str) -> bool {
    ipv6(text, |address| dotted(address, |_| true))
}

fn dotted(text: &str, extra: impl Fn(&str) -> bool) -> bool {
    let octets: Vec<&str> = text.split('.').collect();
    octets.len() == 4
        && octets.iter().all(|octet| {
            (1..=3).contains(&octet.len())
                && octet.bytes().all(|byte| byte.is_ascii_digit())
                && octet.parse::<u8>().is_ok()
                && extra(octet)
        })
}

fn ipv6(text: &str, is_embedded: impl Fn(&str) -> bool) -> bool {
    let groups = |part: &str, may_embed: bool| -> Option<usize> {
        if part.is_empty() {
            return Some(0);
        }
        let mut count = 0;
        let mut groups = part.split(':').peekable();
        while let Some(group) = groups.next() {
            let is_last = groups.peek().is_none();
            if (1..=4).contains(&group.len()) && group.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                count += 1;
            } else if is_last && may_embed && is_embedded(group) {
                count += 2;
            } else {
                return None;
            }
        }
        Some(count)
    };
    match text.split_once("::") {
        Some((before, after)) => match (groups(before, false), groups(after, true)) {
            (Some(before), Some(after)) => before + after <= 7,
            _ => false,
        },
        None => groups(text, true) == Some(8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_addresses_have_a_dotted_domain() {
        assert!(is_email("a.b+c@mail.example.org"));
        for bad in
            ["a@b", "a@[127.0.0.1]", "\"a b\"@c.de", "a..b@c.de", "a@-b.de", "a@b.de.", "@b.de", "a@b@c.de"]
        {
            assert!(!is_email(bad), "{bad}");
        }
    }

    #[test]
    fn host_names_may_end_in_a_dot() {
        assert!(is_hostname("a.b-c.example.") && is_hostname("localhost") && is_hostname("xn--x"));
        assert!(!is_hostname("") && !is_hostname(".") && !is_hostname("-a") && !is_hostname("a_b"));
        assert!(!is_hostname(&"a".repeat(64)) && !is_hostname("a..b"));
    }

    #[test]
    fn addresses_are_complete() {
        assert!(
            is_ipv4("192.168.0.1") && !is_ipv4("192.168.0.01") && !is_ipv4("1.2.3") && !is_ipv4("256.1.1.1")
        );
        for good in [
            "::",
            "::1",
            "1::",
            "1:2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7::",
            "::ffff:1.2.3.4",
            "1:2:3:4:5:6:1.2.3.4",
        ] {
            assert!(is_ipv6(good), "{good}");
        }
        for bad in [
            "",
            ":",
            "1:2:3:4:5:6:7",
            "1::2:3:4:5:6:7:8",
            "1::2::3",
            "12345::",
            "::1.2.3",
            "::%eth0",
            "1.2.3.4::",
        ] {
            assert!(!is_ipv6(bad), "{bad}");
        }
    }
}
