//! As much of RFC 3986 as references inside one document need: resolving against a base and decoding a fragment.

/// `reference` as seen from `base`.
pub(crate) fn resolve(base: &str, reference: &str) -> String {
    let base = without_fragment(base);
    if reference.is_empty() || reference.starts_with('#') {
        return format!("{base}{reference}");
    }
    if scheme_end(reference).is_some() {
        return reference.to_owned();
    }
    let base = base.split('?').next().unwrap_or(base);
    let path_start = path_start(base);
    if reference.starts_with("//") {
        return format!("{}{reference}", &base[..scheme_end(base).unwrap_or(0)]);
    }
    let (path, rest) = reference.split_at(reference.find(['?', '#']).unwrap_or(reference.len()));
    let merged = if path.starts_with('/') {
        path.to_owned()
    } else if path.is_empty() {
        base[path_start..].to_owned()
    } else {
        let folder = base[path_start..].rfind('/').map_or("", |slash| &base[path_start..=path_start + slash]);
        // A base such as `http://host` has an empty path, which stands for its root.
        let folder = if folder.is_empty() && path_start > 0 && base.contains("//") { "/" } else { folder };
        format!("{folder}{path}")
    };
    format!("{}{}{rest}", &base[..path_start], remove_dots(&merged))
}

/// The URI up to its fragment.
pub(crate) fn without_fragment(uri: &str) -> &str {
    uri.split('#').next().unwrap_or(uri)
}

/// Undoes percent-encoding; bytes that are not UTF-8 become replacement characters.
pub(crate) fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let escaped = (bytes[index] == b'%')
            .then(|| bytes.get(index + 1..index + 3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        decoded.push(escaped.unwrap_or(bytes[index]));
        index += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Where the path begins: after scheme and authority.
fn path_start(uri: &str) -> usize {
    let start = scheme_end(uri).unwrap_or(0);
    match uri[start..].strip_prefix("//") {
        Some(authority) => start + 2 + authority.find('/').unwrap_or(authority.len()),
        None => start,
    }
}

/// The length of the scheme with its colon.
fn scheme_end(uri: &str) -> Option<usize> {
    let colon = uri.find(':')?;
    let scheme = &uri[..colon];
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(|character| character.is_ascii_alphanumeric() || "+-.".contains(character));
    is_scheme.then_some(colon + 1)
}

fn remove_dots(path: &str) -> String {
    if !path.split('/').any(|segment| segment == "." || segment == "..") {
        return path.to_owned();
    }
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." if is_last => kept.push(""),
            "." => {}
            ".." => {
                if kept.len() > 1 || kept.first().is_some_and(|first| !first.is_empty()) {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            _ => kept.push(segment),
        }
    }
    kept.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_resolve_as_the_standard_says() {
        for (base, reference, expected) in [
            ("", "#/a", "#/a"),
            ("", "q", "q"),
            ("http://a/b/c", "d", "http://a/b/d"),
            ("http://a/b/c", "../d", "http://a/d"),
            ("http://a/b/c", "/d", "http://a/d"),
            ("http://a/b/c", "//h/d", "http://h/d"),
            ("http://a", "d", "http://a/d"),
            ("http://a/b/c#old", "#new", "http://a/b/c#new"),
            ("urn:x:y", "#new", "urn:x:y#new"),
            ("http://a/b", "urn:x", "urn:x"),
        ] {
            assert_eq!(resolve(base, reference), expected, "{reference} from {base}");
        }
    }

    #[test]
    fn a_broken_escape_stays_as_it_is() {
        assert_eq!(percent_decode("a%20b%2"), "a b%2");
        assert_eq!(percent_decode("%zz"), "%zz");
    }
}
