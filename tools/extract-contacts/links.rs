//! E-mail addresses and URLs.

use std::ops::Range;

use linkify::{LinkFinder, LinkKind};

/// Endings that make bare words like `example.com` a link. Endings that are also file types or words
/// (`main.rs`, `notes.md`, `it`) are not here: such a link needs `https://` or `www.` to be seen.
const BARE_ENDINGS: [&str; 34] = [
    "ai", "app", "at", "au", "biz", "br", "ca", "ch", "cn", "co", "com", "de", "dev", "edu", "es", "eu",
    "fr", "gov", "info", "io", "jp", "kr", "mil", "mx", "net", "nl", "nz", "online", "org", "pl", "se",
    "shop", "uk", "us",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Email,
    Url,
}

#[derive(Debug)]
pub(super) struct LinkMatch {
    pub(super) kind: Kind,
    pub(super) value: String,
    /// In bytes.
    pub(super) range: Range<usize>,
}

/// The links of a text in the order they stand.
pub(super) fn find(text: &str) -> Vec<LinkMatch> {
    let mut finder = LinkFinder::new();
    finder.kinds(&[LinkKind::Email, LinkKind::Url]).url_must_have_scheme(false);
    finder
        .links(text)
        .filter_map(|link| {
            let (kind, value) = match link.kind() {
                LinkKind::Email => (Kind::Email, normal_email(link.as_str())),
                _ => (Kind::Url, normal_url(link.as_str())?),
            };
            Some(LinkMatch { kind, value, range: link.start()..link.end() })
        })
        .collect()
}

/// Domains ignore case. The part before the @ need not, so it stays as written.
fn normal_email(address: &str) -> String {
    match address.rsplit_once('@') {
        Some((local, domain)) => format!("{local}@{}", domain.to_lowercase()),
        None => address.to_owned(),
    }
}

/// The URL with its scheme, scheme and host in lower case. Bare words that only look like a host are `None`.
fn normal_url(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (user, host) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    let host = host.to_lowercase();
    if !scheme.is_empty() {
        return Some(format!("{}://{user}{host}{path}", scheme.to_lowercase()));
    }
    is_bare_host(&host).then(|| format!("https://{host}{path}"))
}

fn is_bare_host(host: &str) -> bool {
    let name = host.split(':').next().unwrap_or(host);
    let ending = name.rsplit('.').next().unwrap_or(name);
    name.starts_with("www.") || BARE_ENDINGS.contains(&ending)
}
