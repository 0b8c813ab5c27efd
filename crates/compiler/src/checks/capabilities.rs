//! What a handler may use: named, known and narrow.

use quarterdeck_contracts::BUILT_IN_CAPABILITIES;

use super::Subject;
use crate::{Diagnostic, rules};

pub(super) fn check(subject: &Subject<'_>, problems: &mut Vec<Diagnostic>) {
    for (index, name) in subject.strings("capabilities") {
        if BUILT_IN_CAPABILITIES.iter().any(|spec| spec.is_always_granted && spec.name == name) {
            problems.push(
                Diagnostic::new(
                    &rules::ALWAYS_THERE,
                    format!("every handler has \"{name}\" without declaring it"),
                    "remove the entry",
                )
                .at(subject.json.place(&format!("/capabilities/{index}"))),
            );
        }
    }
    for (index, host) in subject.strings("network") {
        if let Some(fault) = host_error(host) {
            problems.push(
                Diagnostic::new(
                    &rules::BAD_HOST,
                    format!("\"{host}\" is not a host name: {fault}"),
                    "name each host by itself, such as \"api.example.com\"",
                )
                .at(subject.json.place(&format!("/network/{index}"))),
            );
        }
    }
}

fn host_error(host: &str) -> Option<&'static str> {
    if host.contains("://") {
        return Some("leave out the scheme");
    }
    if host.contains(['/', '?', '#', '@']) {
        return Some("leave out the path");
    }
    if host.contains('*') {
        return Some("wildcards are not allowed");
    }
    if host.parse::<std::net::IpAddr>().is_ok() || host.starts_with('[') {
        return Some("addresses are not allowed");
    }
    if host.contains(':') {
        return Some("leave out the port");
    }
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if host.len() > 253 || !host.split('.').all(is_label) {
        return Some("letters, digits and dashes between dots");
    }
    // Resolvers and URL parsers read a last label of digits (also 0x…) as an address in disguise.
    let last = host.rsplit('.').next().unwrap_or("");
    if last.chars().all(|c| c.is_ascii_digit()) || last.starts_with("0x") {
        return Some("addresses are not allowed");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_host_names_are_hosts() {
        for good in ["api.example.com", "localhost", "xn--bcher-kva.example", "a-b.c"] {
            assert_eq!(host_error(good), None, "{good}");
        }
        for bad in [
            "https://api.example.com",
            "api.example.com/v1",
            "api.example.com:443",
            "*.example.com",
            "127.0.0.1",
            "2130706433",
            "0x7f000001",
            "[::1]",
            "::1",
            "-a.example",
            "a..b",
            "",
            "bücher.example",
            "user@host",
        ] {
            assert!(host_error(bad).is_some(), "{bad}");
        }
    }
}
