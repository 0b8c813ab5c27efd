//! Whether a pattern is a regular expression of ECMAScript.

/// Groups nested deeper than this are refused before any parser sees them.
const MAX_GROUP_DEPTH: usize = 100;

/// Alternatives beyond this are refused as well: the parser holds each inside the one before it, and takes all of them
/// apart again by recursion.
const MAX_ALTERNATIVES: usize = 1_000;

/// What is wrong with the pattern as ECMAScript with the `u` flag, if anything is.
pub(super) fn find_error(pattern: &str) -> Option<String> {
    if let Err(error) = regress::Regex::with_flags(pattern, "u") {
        return Some(error.to_string());
    }
    // Two things that the grammar we parse with has and the engines in use do not, or not yet.
    let mut previous = Token::Other("");
    for token in tokens(pattern) {
        match (previous, token) {
            (Token::Boundary, Token::Other(text)) if text.starts_with(['*', '+', '?', '{']) => {
                return Some("nothing to repeat".to_owned());
            }
            (_, Token::GroupStart(kind)) if !kind.starts_with([':', '=', '!', '<']) => {
                return Some("invalid group".to_owned());
            }
            _ => previous = token,
        }
    }
    None
}

/// Whether a pattern has groups or alternatives within each other so deeply that parsing it could exhaust the stack.
pub(crate) fn is_too_nested(pattern: &str) -> bool {
    let (mut depth, mut alternatives) = (0usize, 0usize);
    let mut in_class = false;
    let mut bytes = pattern.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => {
                bytes.next();
            }
            b']' => in_class = false,
            b'[' => in_class = true,
            b'(' if !in_class => depth += 1,
            b')' if !in_class => depth = depth.saturating_sub(1),
            b'|' if !in_class => alternatives += 1,
            _ => {}
        }
        if depth > MAX_GROUP_DEPTH || alternatives > MAX_ALTERNATIVES {
            return true;
        }
    }
    false
}

/// The parts of a pattern that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'p> {
    /// `\b` or `\B` outside a class.
    Boundary,
    /// `(?`, with what follows it.
    GroupStart(&'p str),
    Other(&'p str),
}

fn tokens(pattern: &str) -> impl Iterator<Item = Token<'_>> {
    let mut rest = pattern;
    let mut in_class = false;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let (token, length) = match first {
            '\\' => escape(rest, in_class),
            '(' if !in_class && rest.starts_with("(?") => (Token::GroupStart(&rest[2..]), 2),
            _ => {
                in_class = match first {
                    '[' => true,
                    ']' => false,
                    _ => in_class,
                };
                (Token::Other(&rest[..first.len_utf8()]), first.len_utf8())
            }
        };
        rest = &rest[length..];
        Some(token)
    })
}

fn escape(rest: &str, in_class: bool) -> (Token<'_>, usize) {
    match rest.chars().nth(1) {
        Some('b' | 'B') if !in_class => (Token::Boundary, 2),
        Some(escaped) => (Token::Other(&rest[..1 + escaped.len_utf8()]), 1 + escaped.len_utf8()),
        None => (Token::Other(rest), rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_judged_with_the_unicode_flag() {
        for good in ["^[\\w\\-]+$", "(?<=a)b", "\\p{L}", "(?<n>a)\\k<n>", "[^]", "\\bword\\b", "a\\B"] {
            assert_eq!(find_error(good), None, "{good}");
        }
        for bad in ["(", "\\_", "\\Z", "(?i)a", "(?i:a)", "\\b*", "\\B+", "a{2", "[b-a]", "\\p{Nope}"] {
            assert!(find_error(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn groups_are_counted_whatever_stands_in_classes_and_escapes() {
        assert!(is_too_nested(&"([)]".repeat(101)) && is_too_nested(&"(\\)".repeat(101)));
        assert!(!is_too_nested(&"[(]\\(".repeat(500)) && !is_too_nested(&"(a)".repeat(500)));
        assert!(is_too_nested(&"a|".repeat(1_001)) && !is_too_nested(&"[|]\\|".repeat(2_000)));
    }
}
