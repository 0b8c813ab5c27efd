//! URIs, references, templates, and the URLs of browsers.

use super::network::is_ipv6_in_uri;
use super::scan::{is_ecma_space, is_made_of, take_while};

/// A scheme and something after it.
pub(super) fn is_uri(text: &str) -> bool {
    // Quotation marks are allowed in references and not in full URIs, for no reason but compatibility.
    let is_path_char = |character: char| character != '"' && is_reference_path_char(character);
    match without_scheme(text) {
        Some(rest) => is_rest(rest, is_path_char) && !hierarchy(rest).is_empty(),
        None => false,
    }
}

/// A URI, or what may stand for one relative to another.
pub(super) fn is_uri_reference(text: &str) -> bool {
    let is_full = without_scheme(text).is_some_and(|rest| is_rest(rest, is_reference_path_char));
    is_full || is_rest(text, is_reference_path_char)
}

/// RFC 6570.
pub(super) fn is_uri_template(text: &str) -> bool {
    let mut rest = text;
    loop {
        let Some(brace) = rest.find('{') else { return is_template_literal(rest) };
        let Some(length) = rest[brace..].find('}') else { return false };
        let expression = &rest[brace + 1..brace + length];
        if !is_template_literal(&rest[..brace]) || !is_template_expression(expression) {
            return false;
        }
        rest = &rest[brace + length + 1..];
    }
}

/// `http`, `https` or `ftp` on a public host.
pub(super) fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    if !["http", "https", "ftp"].iter().any(|known| known.eq_ignore_ascii_case(scheme)) {
        return false;
    }
    // Credentials are anything up to some `@`, so every one of them is a place where the host may begin.
    let credentials = rest.split(is_ecma_space).next().unwrap_or_default();
    let after_credentials =
        credentials.match_indices('@').filter(|(at, _)| *at > 0).map(|(at, _)| &rest[at + 1..]);
    std::iter::once(rest).chain(after_credentials.take(100)).any(is_host_and_path)
}

fn without_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(|character| character.is_ascii_alphanumeric() || "+-.".contains(character));
    is_scheme.then_some(rest)
}

fn hierarchy(rest: &str) -> &str {
    &rest[..rest.find(['?', '#']).unwrap_or(rest.len())]
}

/// Everything after the scheme.
fn is_rest(rest: &str, is_path_char: fn(char) -> bool) -> bool {
    let hierarchy = hierarchy(rest);
    let (query, fragment) = match rest[hierarchy.len()..].split_once('#') {
        Some((query, fragment)) => (query.strip_prefix('?').unwrap_or(query), fragment),
        None => (rest[hierarchy.len()..].strip_prefix('?').unwrap_or_default(), ""),
    };
    let is_tail = |text| is_made_of(text, |character| is_path_char(character) || "/?".contains(character));
    is_hierarchy(hierarchy, is_path_char) && is_tail(query) && is_tail(fragment)
}

fn is_hierarchy(text: &str, is_path_char: fn(char) -> bool) -> bool {
    let is_path = |path: &str| is_made_of(path, |character| is_path_char(character) || character == '/');
    let begins_segment = |path: &str| path.is_empty() || !path.starts_with('/');
    // An authority may follow one slash as well as two. That makes `http://a:b/` pass: an empty host, then a path.
    let authority = |text: &str| {
        let (authority, path) = text.split_at(text.find('/').unwrap_or(text.len()));
        is_authority(authority, is_path_char) && is_path(path)
    };
    text.strip_prefix("//").is_some_and(authority)
        || text.strip_prefix('/').is_some_and(authority)
        || text.strip_prefix('/').is_some_and(|path| begins_segment(path) && is_path(path))
        || (begins_segment(text) && is_path(text))
}

fn is_authority(text: &str, is_path_char: fn(char) -> bool) -> bool {
    let is_user_char = |character: char| character != '"' && character != '@' && is_path_char(character);
    let host = match text.split_once('@') {
        Some((user, host)) if is_made_of(user, is_user_char) => host,
        Some(_) => return false,
        None => text,
    };
    let is_port = |rest: &str| {
        rest.is_empty()
            || rest.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if let Some(literal) = host.strip_prefix('[') {
        return literal.split_once(']').is_some_and(|(address, rest)| {
            (is_ipv6_in_uri(address) || is_future_address(address)) && is_port(rest)
        });
    }
    let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
    is_made_of(name, |character| character != '@' && is_path_char(character)) && is_port(port)
}

fn is_future_address(text: &str) -> bool {
    let Some((version, address)) = text.strip_prefix(['v', 'V']).and_then(|rest| rest.split_once('.')) else {
        return false;
    };
    let is_address_char =
        |character: char| character.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:".contains(character);
    !version.is_empty()
        && version.bytes().all(|byte| byte.is_ascii_hexdigit())
        && !address.is_empty()
        && address.chars().all(is_address_char)
}

fn is_reference_path_char(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-._~!$&'\"()*+,;=:@".contains(character)
}

fn is_template_literal(text: &str) -> bool {
    is_made_of(text, |character| character > '\u{20}' && !"\"'<>%\\^`{|}".contains(character))
}

fn is_template_expression(text: &str) -> bool {
    let variables = text.strip_prefix(|first| "+#./;?&=,!@|".contains(first)).unwrap_or(text);
    variables.split(',').all(|variable| {
        let name = match variable.split_once(':') {
            Some((name, length)) if is_prefix_length(length) => name,
            Some(_) => return false,
            None => variable.strip_suffix('*').unwrap_or(variable),
        };
        !name.is_empty()
            && is_made_of(name, |character| character.is_ascii_alphanumeric() || character == '_')
    })
}

fn is_prefix_length(text: &str) -> bool {
    (1..=4).contains(&text.len()) && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_host_and_path(text: &str) -> bool {
    let host = &text[..text.find([':', '/']).unwrap_or(text.len())];
    let mut rest = &text[host.len()..];
    if let Some(port) = rest.strip_prefix(':') {
        rest = port;
        if !(2..=5).contains(&take_while(&mut rest, |character| character.is_ascii_digit()).len()) {
            return false;
        }
    }
    let is_path = rest.is_empty() || (rest.starts_with('/') && !rest.contains(is_ecma_space));
    is_path && (is_public_ipv4(host) || is_domain(host))
}

fn is_public_ipv4(host: &str) -> bool {
    let octets: Vec<&str> = host.split('.').collect();
    let [first, second, third, fourth] = octets[..] else { return false };
    let number = |octet: &str| -> Option<u32> {
        let is_octet = (1..=3).contains(&octet.len()) && octet.bytes().all(|byte| byte.is_ascii_digit());
        is_octet.then(|| octet.parse().ok()).flatten()
    };
    let (Some(a), Some(b), Some(c), Some(d)) = (number(first), number(second), number(third), number(fourth))
    else {
        return false;
    };
    let is_private = matches!(a, 10 | 127)
        || matches!((a, b), (169, 254) | (192, 168))
        || (a == 172 && (16..=31).contains(&b) && second.len() == 2);
    let no_leading_zero = |octet: &str| !octet.starts_with('0');
    // An inner octet of three digits begins with 1 or 2; one of two may begin with 0.
    let is_inner = |octet: &str, value: u32| value <= 255 && !(octet.len() == 3 && octet.starts_with('0'));
    (1..=223).contains(&a)
        && no_leading_zero(first)
        && is_inner(second, b)
        && is_inner(third, c)
        && (1..=254).contains(&d)
        && no_leading_zero(fourth)
        && !is_private
}

fn is_domain(host: &str) -> bool {
    let is_letter =
        |character: char| character.is_ascii_alphabetic() || ('\u{a1}'..='\u{ffff}').contains(&character);
    let is_name_char = |character: char| is_letter(character) || character.is_ascii_digit();
    let Some((names, top)) = host.rsplit_once('.') else { return false };
    top.chars().count() >= 2
        && top.chars().all(is_letter)
        && names
            .split('.')
            .all(|name| name.split('-').all(|part| !part.is_empty() && part.chars().all(is_name_char)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_have_a_scheme_and_something_after_it() {
        for good in [
            "http://a.b/c?d#e",
            "mailto:a@b",
            "urn:x:y",
            "http://a:b/",
            "http://[::1]:80/",
            "a:b",
            "http://u:p@h",
        ] {
            assert!(is_uri(good), "{good}");
        }
        for bad in ["a:", "", "abc", "/a", "http://a b", "http://a/\"", "http://%zz/", "1a:b", "http://[::1"]
        {
            assert!(!is_uri(bad), "{bad}");
        }
    }

    #[test]
    fn references_may_be_relative() {
        for good in ["", "#a", "?q", "/a/b", "a/b", "//host/x", "\"", "http://a/b"] {
            assert!(is_uri_reference(good), "{good}");
        }
        for bad in ["\\\\a", "a b", "#a#b", "/a{b}", "%"] {
            assert!(!is_uri_reference(bad), "{bad}");
        }
    }

    #[test]
    fn templates_name_their_variables() {
        assert!(is_uri_template("http://a/{b}{?c,d*}{+e:3}") && is_uri_template(""));
        for bad in ["{a.b}", "a'b", "{", "}", "{}", "{a:0}", "{a:12345}", "a b"] {
            assert!(!is_uri_template(bad), "{bad}");
        }
    }

    #[test]
    fn urls_are_public() {
        for good in ["http://a.bc", "https://u:p@a.bc:8080/x?y", "ftp://8.8.8.8/x", "http://münchen.de"] {
            assert!(is_url(good), "{good}");
        }
        for bad in [
            "http://localhost",
            "http://10.0.0.1",
            "http://192.168.1.1",
            "http://a.b",
            "a.bc",
            "http://a--b.cd",
            "http://a.bc/ d",
        ] {
            assert!(!is_url(bad), "{bad}");
        }
    }
}
