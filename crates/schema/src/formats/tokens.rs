//! Identifiers, pointers, base64 and regular expressions.

use super::scan::{is_made_of, take_while};
use crate::pattern::is_too_nested;

/// Five groups of hexadecimal digits, perhaps as a URN.
pub(super) fn is_uuid(text: &str) -> bool {
    let prefix = "urn:uuid:";
    let text = match text.get(..prefix.len()) {
        Some(start) if start.eq_ignore_ascii_case(prefix) => &text[prefix.len()..],
        _ => text,
    };
    let groups: Vec<&str> = text.split('-').collect();
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

pub(super) fn is_json_pointer(text: &str) -> bool {
    (text.is_empty() || text.starts_with('/')) && has_whole_escapes(text)
}

/// A pointer behind `#`, percent-encoded.
pub(super) fn is_json_pointer_fragment(text: &str) -> bool {
    let is_allowed =
        |character: char| character.is_ascii_alphanumeric() || "_-.!$&'()*+,;:=@~/".contains(character);
    text.strip_prefix('#').is_some_and(|pointer| is_json_pointer(pointer) && is_made_of(pointer, is_allowed))
}

/// How many levels up, then a pointer or `#`.
pub(super) fn is_relative_json_pointer(text: &str) -> bool {
    let mut rest = text;
    let levels = take_while(&mut rest, |character| character.is_ascii_digit());
    (levels == "0" || (!levels.is_empty() && !levels.starts_with('0')))
        && (rest == "#" || is_json_pointer(rest))
}

/// Base64 with padding. One good line is enough, as it is for ajv-formats.
pub(super) fn is_byte(text: &str) -> bool {
    text.split(['\n', '\r', '\u{2028}', '\u{2029}']).any(|line| {
        let data = line.strip_suffix("==").or_else(|| line.strip_suffix('=')).unwrap_or(line);
        let padding = line.len() - data.len();
        let is_whole = matches!((data.len() % 4, padding), (0, 0) | (2, 2) | (3, 1));
        is_whole && data.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
    })
}

/// Longer texts are no regular expressions here: the parser's time grows with the square of a class.
const MAX_REGEX_BYTES: usize = 10_000;

/// An ECMAScript regular expression, without the `u` flag.
pub(super) fn is_regex(text: &str) -> bool {
    if text.len() > MAX_REGEX_BYTES {
        return false;
    }
    let has_foreign_anchor = text.match_indices("\\Z").any(|(at, _)| at > 0 && !text[..at].ends_with('\\'));
    !has_foreign_anchor && !is_too_nested(text) && regress::Regex::new(text).is_ok()
}

fn has_whole_escapes(text: &str) -> bool {
    text.split('~').skip(1).all(|after| after.starts_with(['0', '1']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_may_be_urns() {
        assert!(is_uuid("123e4567-e89b-12d3-a456-426614174000"));
        assert!(is_uuid("URN:uuid:123E4567-e89b-12d3-a456-426614174000"));
        assert!(
            !is_uuid("123e4567e89b12d3a456426614174000") && !is_uuid("123e4567-e89b-12d3-a456-42661417400g")
        );
    }

    #[test]
    fn pointers_escape_their_tildes() {
        assert!(
            is_json_pointer("")
                && is_json_pointer("/a~0/~1")
                && !is_json_pointer("a")
                && !is_json_pointer("/~2")
        );
        assert!(
            is_json_pointer_fragment("#/a%20b")
                && !is_json_pointer_fragment("/a")
                && !is_json_pointer_fragment("#/a b")
        );
        assert!(
            is_relative_json_pointer("0#")
                && is_relative_json_pointer("12/a")
                && !is_relative_json_pointer("01/a")
        );
    }

    #[test]
    fn base64_is_padded() {
        assert!(is_byte("") && is_byte("YQ==") && is_byte("YWI=") && is_byte("YWJj") && is_byte("!!\nYQ=="));
        assert!(!is_byte("YQ") && !is_byte("!!") && !is_byte("YQ="));
    }

    #[test]
    fn regular_expressions_are_of_ecmascript() {
        assert!(is_regex("^a+$") && is_regex("\\_") && !is_regex("(") && !is_regex("a\\Z"));
    }
}
