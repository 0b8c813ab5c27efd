//! JSON from outside, in which no key stands twice.
//!
//! Readers disagree on which of two equal keys counts, so that what was judged or approved may not be what is done. Every
//! text that we did not write ourselves is read here: arguments, bodies, messages, records.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Value};

/// How much of a key is quoted in a fault, in bytes.
const MAX_QUOTED_KEY_BYTES: usize = 64;

/// The keys that an object has room for from the start. Most objects have few; grown from nothing, their tables would be
/// made twice. It is what the smallest table for more than three holds.
const INITIAL_KEYS: usize = 7;

/// Why a text is not JSON as we take it: one clause with line and column, without any value of the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct JsonError {
    reason: String,
    line: usize,
    column: usize,
    ends_early: bool,
}

impl JsonError {
    /// The line of the text, counted from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// The column in its line, in bytes.
    pub fn column(&self) -> usize {
        self.column
    }

    /// Whether the text is the beginning of something longer.
    pub fn ends_early(&self) -> bool {
        self.ends_early
    }
}

/// Parses JSON. A key that stands twice in one object is a fault, at any depth; nesting is limited as serde_json limits it.
pub fn parse_json(text: &str) -> Result<Value, JsonError> {
    read(text, RefuseDuplicates)
}

/// Parses JSON in which keys may stand twice, and tells whether any did; the last one is in the value.
///
/// For messages of which every part must be answered, the parts that cannot be trusted included.
pub fn parse_json_noting_duplicates(text: &str) -> Result<(Value, bool), JsonError> {
    let found = Cell::new(false);
    let value = read(text, RecordDuplicates(&found))?;
    Ok((value, found.get()))
}

fn read(text: &str, duplicates: impl Duplicates) -> Result<Value, JsonError> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict(duplicates).deserialize(&mut reader);
    let value = value.and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| JsonError {
        reason: error.to_string(),
        line: error.line().max(1),
        column: error.column(),
        ends_early: error.is_eof(),
    })
}

/// What becomes of a key that stands twice. A type and not a value, so that the usual reader pays nothing for the other.
trait Duplicates: Copy {
    fn found<E: Error>(self, key: &str) -> Result<(), E>;
}

#[derive(Clone, Copy)]
struct RefuseDuplicates;

impl Duplicates for RefuseDuplicates {
    fn found<E: Error>(self, key: &str) -> Result<(), E> {
        let quoted = &key[..key.floor_char_boundary(MAX_QUOTED_KEY_BYTES)];
        Err(E::custom(format_args!("the key {quoted:?} stands twice")))
    }
}

#[derive(Clone, Copy)]
struct RecordDuplicates<'a>(&'a Cell<bool>);

impl Duplicates for RecordDuplicates<'_> {
    fn found<E: Error>(self, _: &str) -> Result<(), E> {
        self.0.set(true);
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct Strict<D>(D);

impl<'de, D: Duplicates> DeserializeSeed<'de> for Strict<D> {
    type Value = Value;

    fn deserialize<R: serde::Deserializer<'de>>(self, deserializer: R) -> Result<Value, R::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, D: Duplicates> Visitor<'de> for Strict<D> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::with_capacity(INITIAL_KEYS);
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(self)?;
            match object.entry(key) {
                Entry::Vacant(place) => drop(place.insert(value)),
                Entry::Occupied(mut taken) => {
                    self.0.found(taken.key())?;
                    taken.insert(value);
                }
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_parsed_as_it_stands() {
        let value = json!({ "a": [1, -2, 0.5, "é", null, true], "b": { "a": {} } });
        assert_eq!(parse_json(&value.to_string()), Ok(value));
    }

    #[test]
    fn key_that_stands_twice_is_refused_at_any_depth_and_in_any_spelling() {
        for text in [
            r#"{ "a": 1, "a": 1 }"#,
            r#"{ "a": [{ "b": 1, "b": 2 }] }"#,
            r#"[[{ "x": {}, "y": 0, "x": {} }]]"#,
            "{ \"approve\": false, \"\\u0061pprove\": true }",
        ] {
            let fault = parse_json(text).unwrap_err().to_string();
            assert!(fault.contains("stands twice at line 1 column"), "{text}: {fault}");
            let (_, found) = parse_json_noting_duplicates(text).unwrap();
            assert!(found, "{text}");
        }
        assert_eq!(parse_json_noting_duplicates(r#"{ "a": 1, "a": 2 }"#), Ok((json!({ "a": 2 }), true)));
        assert_eq!(
            parse_json_noting_duplicates(r#"{ "a": { "a": 1 } }"#),
            Ok((json!({ "a": { "a": 1 } }), false))
        );
    }

    #[test]
    fn fault_names_the_place_and_quotes_no_value() {
        let fault = parse_json(r#"{ "a": [{ "b": 1, "b": 2 }] }"#).unwrap_err();
        assert_eq!(fault.to_string(), "the key \"b\" stands twice at line 1 column 26");
        let long = format!("{{ {0:?}: 1, {0:?}: 2 }}", "é".repeat(1_000));
        assert!(parse_json(&long).unwrap_err().to_string().len() < 200);
        for broken in ["", "{", "nul", "{\"a\":secret}", "{} {}", "1e999", "NaN", "\"\u{1}\""] {
            let fault = parse_json(broken).unwrap_err().to_string();
            assert!(!fault.contains("secret"), "{broken}: {fault}");
        }
    }

    #[test]
    fn deep_nesting_is_refused() {
        assert!(parse_json(&"[".repeat(100_000)).is_err());
        assert!(parse_json_noting_duplicates(&"{\"a\":".repeat(100_000)).is_err());
    }
}
