//! How long a response is for a model.

use quarterdeck_contracts::{Outcome, ToolResponse, needs_no_escape};
use serde_json::{Value, json};

/// How many characters a model would read.
pub(crate) fn response_chars(response: &ToolResponse) -> usize {
    match &response.outcome {
        Outcome::Success(data) => json_chars(data),
        Outcome::Failure(error) => json_chars(&json!(error)),
    }
}

/// How many characters a value has as JSON, without writing it.
fn json_chars(value: &Value) -> usize {
    /// Brackets and a comma after each item but the last.
    fn around(items: usize) -> usize {
        2 + items.saturating_sub(1)
    }
    match value {
        Value::Null | Value::Bool(true) => 4,
        Value::Bool(false) => 5,
        Value::Number(number) => match number.as_u64() {
            Some(whole) => whole.checked_ilog10().unwrap_or(0) as usize + 1,
            None => number.to_string().len(),
        },
        Value::String(text) => quoted(text),
        Value::Array(items) => around(items.len()) + items.iter().map(json_chars).sum::<usize>(),
        Value::Object(fields) => {
            let each = fields.iter().map(|(name, field)| quoted(name) + 1 + json_chars(field));
            around(fields.len()) + each.sum::<usize>()
        }
    }
}

/// The characters of a string with its quotes and escapes.
fn quoted(text: &str) -> usize {
    // Most strings are plain: each byte is a character, and none is escaped.
    if text.is_ascii() && needs_no_escape(text) {
        return 2 + text.len();
    }
    2 + text.chars().count() + text.bytes().map(longer_by).sum::<usize>()
}

/// By how much an escape is longer than its character.
fn longer_by(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
        0..=0x1f => 5,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop, prop_oneof, proptest};

    use super::*;

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<Option<bool>>().prop_map(|value| json!(value)),
            any::<i64>().prop_map(|value| json!(value)),
            any::<u64>().prop_map(|value| json!(value)),
            any::<f64>().prop_map(|value| json!(value)),
            any::<String>().prop_map(|value| json!(value)),
        ];
        leaf.prop_recursive(3, 20, 5, |core| {
            prop_oneof![
                prop::collection::vec(core.clone(), 0..5).prop_map(|items| json!(items)),
                prop::collection::btree_map(any::<String>(), core, 0..5).prop_map(|fields| json!(fields)),
            ]
        })
    }

    proptest! {
        #[test]
        fn characters_are_counted_as_they_would_be_written(value in json()) {
            assert_eq!(json_chars(&value), value.to_string().chars().count());
        }
    }
}
