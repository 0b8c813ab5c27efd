//! Values in messages, cut short.

use serde_json::Value;

/// Longer values are cut: a message must not carry a whole document, to a model or to a log.
const MAX_EXCERPT_CHARS: usize = 40;

/// The value as JSON, at most about forty characters of it. Only as much of it is looked at.
pub(crate) fn excerpt(value: &Value) -> String {
    match value {
        Value::String(text) => {
            cut(&Value::String(text.chars().take(MAX_EXCERPT_CHARS + 1).collect()).to_string())
        }
        Value::Array(items) => format!("an array of {}", counted(items.len(), "item", "items")),
        Value::Object(members) => format!("an object of {}", counted(members.len(), "member", "members")),
        scalar => cut(&scalar.to_string()),
    }
}

/// `1 item`, `2 items`.
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Any text, cut short.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_EXCERPT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_values_are_cut_and_short_ones_are_not() {
        assert_eq!(excerpt(&json!(50)), "50");
        assert_eq!(excerpt(&json!("ship")), "\"ship\"");
        assert_eq!(excerpt(&json!("é".repeat(5000))), format!("\"{}…", "é".repeat(39)));
        assert_eq!(excerpt(&json!([1, 2])), "an array of 2 items");
    }
}
