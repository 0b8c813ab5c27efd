//! Arguments as text: JSON in which no key stands twice.
//!
//! Readers disagree on which of two equal keys counts, so that what a gate has judged may not be what a handler sees.
//! Where the text is ours to parse, it is refused.

use std::fmt;

use serde_json::map::Entry;
use serde_json::{Map, Value};

/// Why a text is not arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ArgumentFault(String);

/// Parses arguments. Nesting is limited as serde_json limits it.
pub fn parse_arguments(text: &str) -> Result<Value, ArgumentFault> {
    let Strict(value) = serde_json::from_str(text).map_err(|error| ArgumentFault(error.to_string()))?;
    Ok(value)
}

/// A value that was parsed with an eye on its keys.
struct Strict(Value);

impl<'de> serde::Deserialize<'de> for Strict {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor).map(Strict)
    }
}

struct Visitor;

impl<'de> serde::de::Visitor<'de> for Visitor {
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

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((key, Strict(value))) = entries.next_entry::<String, Strict>()? {
            match object.entry(key) {
                Entry::Vacant(place) => drop(place.insert(value)),
                Entry::Occupied(taken) => {
                    return Err(serde::de::Error::custom(format_args!(
                        "the key {:?} stands twice",
                        taken.key()
                    )));
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
        assert_eq!(parse_arguments(&value.to_string()), Ok(value));
    }

    #[test]
    fn a_key_that_stands_twice_is_refused_at_any_depth() {
        let fault = parse_arguments(r#"{ "a": [{ "b": 1, "b": 2 }] }"#).unwrap_err();
        assert_eq!(fault.to_string(), "the key \"b\" stands twice at line 1 column 26");
    }

    #[test]
    fn deep_nesting_is_refused() {
        assert!(parse_arguments(&"[".repeat(100_000)).is_err());
    }
}
