//! One spelling for each JSON value, so that values can be hashed and compared as text.
//!
//! Keys are sorted at every depth, there is no white space, and numbers that are equal are written alike: `1.0`
//! is `1`. This is RFC 8785 but for one thing: integers beyond 2^53 keep all their digits. The RFC would write
//! 9007199254740993 as 9007199254740992, and two calls with different ids would be taken for the same call.

use std::cmp::Ordering;
use std::fmt::Write;

use serde_json::{Number, Value};
use smallvec::SmallVec;

use crate::needs_no_escape;

/// The one spelling of a value.
pub fn canonical_json(value: &Value) -> String {
    let mut text = String::new();
    write_canonical_json(&mut text, value);
    text
}

/// Writes the one spelling of a value behind a text.
pub fn write_canonical_json(text: &mut String, value: &Value) {
    match value {
        Value::Number(number) => write_number(text, number),
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_canonical_json(text, item);
                text.push(',');
            }
            close(text, items.len(), "]");
        }
        Value::Object(fields) => {
            /// Objects of calls rarely have more, and to sort them takes no memory of its own.
            const USUAL_FIELDS: usize = 8;
            let mut fields: SmallVec<[_; USUAL_FIELDS]> = fields.iter().collect();
            fields.sort_unstable_by(|(a, _), (b, _)| by_utf16(a, b));
            text.push('{');
            for (key, value) in &fields {
                write_string(text, key);
                text.push(':');
                write_canonical_json(text, value);
                text.push(',');
            }
            close(text, fields.len(), "}");
        }
        Value::String(string) => write_string(text, string),
        Value::Null => text.push_str("null"),
        Value::Bool(true) => text.push_str("true"),
        Value::Bool(false) => text.push_str("false"),
    }
}

/// Ends a list: the comma after its last item becomes the bracket.
fn close(text: &mut String, items: usize, bracket: &str) {
    if items > 0 {
        text.truncate(text.len() - 1);
    }
    text.push_str(bracket);
}

/// By UTF-16 code units, as the RFC says, so that implementations in JavaScript agree.
fn by_utf16(a: &str, b: &str) -> Ordering {
    /// The first byte of U+E000 and everything after it, where the order of bytes is no longer that of code units.
    const PRIVATE: u8 = 0xee;
    match a.bytes().zip(b.bytes()).find(|(a, b)| a != b) {
        None => a.len().cmp(&b.len()),
        Some((a, b)) if a < PRIVATE && b < PRIVATE => a.cmp(&b),
        Some(_) => a.encode_utf16().cmp(b.encode_utf16()),
    }
}

fn write_string(text: &mut String, string: &str) {
    // Every call is spelled once for the ledger, and hardly any string in it needs escaping.
    if needs_no_escape(string) {
        text.reserve(string.len() + 2);
        text.push('"');
        text.push_str(string);
        text.push('"');
    } else {
        // Writing to a string cannot fail.
        let _ = write!(text, "{}", Value::String(string.to_owned()));
    }
}

fn write_number(text: &mut String, number: &Number) {
    /// Integers up to here are exact in both of JSON's usual representations.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if let Some(whole) = number.as_u64() {
        return write_whole(text, whole);
    }
    let _ = match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() <= EXACT => {
            write!(text, "{}", float as i64)
        }
        _ => write!(text, "{number}"),
    };
}

/// Digits without the machinery of `format!`: most numbers in a call are small and whole.
fn write_whole(text: &mut String, mut whole: u64) {
    let mut digits = [b'0'; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (whole % 10) as u8;
        whole /= 10;
        if whole == 0 {
            break;
        }
    }
    text.push_str(std::str::from_utf8(&digits[first..]).expect("digits are ASCII"));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_sorted_at_every_depth() {
        let value = json!({ "b": [{ "z": null, "a": true }], "a": "é\n" });
        assert_eq!(canonical_json(&value), r#"{"a":"é\n","b":[{"a":true,"z":null}]}"#);
    }

    #[test]
    fn strings_are_escaped_as_json_escapes_them() {
        let value = json!({ "a\"b": "\u{0}\u{1f} \\ \u{7f} \u{2028} 😀" });
        assert_eq!(canonical_json(&value), value.to_string());
    }

    #[test]
    fn keys_are_in_the_order_of_their_utf_16_code_units() {
        // An emoji begins with a surrogate, which comes before U+FF5E though its code point comes after it.
        let value = json!({ "\u{ff5e}": 1, "\u{1f600}": 2, "a": 3 });
        assert_eq!(canonical_json(&value), "{\"a\":3,\"\u{1f600}\":2,\"\u{ff5e}\":1}");
    }

    #[test]
    fn equal_numbers_are_written_alike() {
        assert_eq!(canonical_json(&json!([1.0, 1, -0.0, 1.5, 1e3])), "[1,1,0,1.5,1000]");
    }

    #[test]
    fn large_integers_keep_their_digits() {
        let value = json!([9_007_199_254_740_993_u64, u64::MAX, i64::MIN]);
        assert_eq!(canonical_json(&value), "[9007199254740993,18446744073709551615,-9223372036854775808]");
    }
}
