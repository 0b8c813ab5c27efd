//! Regular expressions of ECMAScript: whether one is correct, and how to say it to our engine.

use std::borrow::Cow;

use serde_json::Value;

use crate::pointer;

/// Groups nested deeper than this are refused before any regex engine sees them.
const DEEPEST_GROUP: usize = 100;

/// What is wrong with the pattern as ECMAScript with the `u` flag, if anything is.
pub(crate) fn grammar_fault(pattern: &str) -> Option<String> {
    if let Err(error) = regress::Regex::with_flags(pattern, "u") {
        return Some(error.to_string());
    }
    // Two things that the grammar we parse with has and the one most people run does not, or not yet.
    let mut previous = Token::Other("");
    for token in tokens(pattern) {
        match (previous, token) {
            (Token::Boundary(_), Token::Other(text)) if text.starts_with(['*', '+', '?', '{']) => {
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

/// The same pattern in words that the engine knows.
pub(crate) fn translated(pattern: &str) -> Cow<'_, str> {
    if !["[]", "[^]", "\\0", "\\c", "\\b"].iter().any(|rare| pattern.contains(rare)) {
        return Cow::Borrowed(pattern);
    }
    let mut text = String::with_capacity(pattern.len() + 8);
    for token in tokens(pattern) {
        match token {
            Token::EmptyClass => text.push_str("[^\\s\\S]"),
            Token::FullClass => text.push_str("[\\s\\S]"),
            Token::Control(code) => text.push_str(&format!("\\x{code:02X}")),
            Token::GroupStart(_) => text.push_str("(?"),
            Token::Boundary(other) | Token::Other(other) => text.push_str(other),
        }
    }
    Cow::Owned(text)
}

/// Whether the groups of a pattern are nested so deeply that parsing it could exhaust the stack.
pub(crate) fn is_too_nested(pattern: &str) -> bool {
    let mut depth = 0usize;
    for byte in pattern.bytes() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST_GROUP {
            return true;
        }
    }
    false
}

/// The pointer of the first pattern of a schema, whether or not anything reaches it, that is too nested.
pub(crate) fn first_too_nested(schema: &Value, pointer: &str) -> Option<String> {
    match schema {
        Value::Object(members) => members.iter().find_map(|(name, member)| {
            let place = pointer::join(pointer, name);
            let is_pattern = name == "pattern" && member.as_str().is_some_and(is_too_nested);
            if is_pattern || is_too_nested(name) { Some(place) } else { first_too_nested(member, &place) }
        }),
        Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            let place = pointer::join(pointer, &index.to_string());
            first_too_nested(item, &place)
        }),
        _ => None,
    }
}

/// The parts of a pattern that matter here; everything else as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'p> {
    /// `[]`, which matches nothing.
    EmptyClass,
    /// `[^]`, which matches anything.
    FullClass,
    /// A control character: `\0`, `\cA`, or `\b` inside a class.
    Control(u8),
    /// `\b` or `\B` outside a class.
    Boundary(&'p str),
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
            '[' if !in_class && rest.starts_with("[]") => (Token::EmptyClass, 2),
            '[' if !in_class && rest.starts_with("[^]") => (Token::FullClass, 3),
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
    let mut following = rest.chars().skip(1);
    match (following.next(), following.next()) {
        (Some('b'), _) if in_class => (Token::Control(8), 2),
        (Some('b' | 'B'), _) if !in_class => (Token::Boundary(&rest[..2]), 2),
        (Some('0'), _) => (Token::Control(0), 2),
        (Some('c'), Some(letter)) if letter.is_ascii_alphabetic() => (Token::Control(letter as u8 % 32), 3),
        (Some(escaped), _) => (Token::Other(&rest[..1 + escaped.len_utf8()]), 1 + escaped.len_utf8()),
        (None, _) => (Token::Other(rest), rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_judged_with_the_unicode_flag() {
        for good in ["^[\\w\\-]+$", "(?<=a)b", "\\p{L}", "(?<n>a)\\k<n>", "[^]", "\\bword\\b", "a\\B"] {
            assert_eq!(grammar_fault(good), None, "{good}");
        }
        for bad in ["(", "\\_", "\\Z", "(?i)a", "(?i:a)", "\\b*", "\\B+", "a{2", "[b-a]", "\\p{Nope}"] {
            assert!(grammar_fault(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn rare_words_are_translated_and_the_rest_is_kept() {
        assert_eq!(translated("^a+$"), "^a+$");
        assert_eq!(
            translated("[]|[^]|\\0|[\\b]|\\cJ|\\b(?:x)[^\\]]\\\\b"),
            "[^\\s\\S]|[\\s\\S]|\\x00|[\\x08]|\\x0A|\\b(?:x)[^\\]]\\\\b"
        );
    }
}
