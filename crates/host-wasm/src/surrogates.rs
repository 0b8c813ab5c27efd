//! Half characters in JSON. A JavaScript string may hold one, which is escaped when it is written and has no place in ours.

/// The text with U+FFFD in place of escapes that are half a character.
pub fn without_lone_surrogates(text: &str) -> String {
    let unit = |at: usize| -> Option<u16> {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut clean = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(escape) = text[at..].find('\\').map(|offset| at + offset) {
        clean.push_str(&text[at..escape]);
        let low_follows = matches!(unit(escape + 6), Some(0xDC00..=0xDFFF));
        let (copied, length) = match unit(escape) {
            Some(0xD800..=0xDBFF) if low_follows => (&text[escape..escape + 12], 12),
            Some(0xD800..=0xDFFF) => ("\\ufffd", 6),
            // Two bytes, unless what follows is no escape at all.
            _ => text.get(escape..escape + 2).map_or(("\\", 1), |pair| (pair, 2)),
        };
        clean.push_str(copied);
        at = escape + length;
    }
    clean.push_str(&text[at..]);
    clean
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn half_a_character_does_not_cost_the_text() {
        let text = r#"{"a":"\ud83d!","b":"\\ud83d","c":"\ud83d\ude00","d":"\udc00\ud800","e":"\u0000é"}"#;
        let value: Value = serde_json::from_str(&without_lone_surrogates(text)).unwrap();
        assert_eq!(value["a"], "\u{fffd}!");
        assert_eq!(value["b"], "\\ud83d");
        assert_eq!(value["c"], "😀");
        assert_eq!(value["d"], "\u{fffd}\u{fffd}");
        assert_eq!(value["e"], "\0é");
    }

    #[test]
    fn what_is_no_json_does_no_harm() {
        for text in ["\\", "\\é", "\\u", "\\ud800\\", "\\ud800\\ué"] {
            without_lone_surrogates(text);
        }
    }
}
