//! Brings a schema into the form that the validator crate reads as we mean it.

use serde_json::{Map, Value, json};

use crate::keywords;

/// A copy in which `nullable` is spelt out in `type`, and `$schema` is gone: every schema is read as draft 2020-12.
pub(crate) fn prepared(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => Value::Object(object(members)),
        other => other.clone(),
    }
}

fn object(schema: &Map<String, Value>) -> Map<String, Value> {
    let mut copy: Map<String, Value> = schema
        .iter()
        .filter(|(keyword, _)| *keyword != "$schema")
        .map(|(keyword, value)| (keyword.clone(), keyword_value(keyword, value)))
        .collect();
    if schema.get("nullable") == Some(&Value::Bool(true)) {
        admit_null(&mut copy);
    }
    copy
}

fn keyword_value(keyword: &str, value: &Value) -> Value {
    use keywords::Shape;
    match (keywords::applicator(keyword), value) {
        (Some((Shape::One, _)), schema) => prepared(schema),
        (Some((Shape::List, _)), Value::Array(items)) => items.iter().map(prepared).collect(),
        (Some((Shape::Map, _)), Value::Object(members)) => {
            members.iter().map(|(name, schema)| (name.clone(), prepared(schema))).collect()
        }
        _ => value.clone(),
    }
}

fn admit_null(schema: &mut Map<String, Value>) {
    match schema.get_mut("type") {
        Some(Value::Array(names)) if !names.contains(&json!("null")) => names.push(json!("null")),
        Some(name @ Value::String(_)) if name != "null" => *name = json!([name.take(), "null"]),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nullable_is_rewritten_where_it_is_a_keyword_and_nowhere_else() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {
                "a": {"type": "string", "nullable": true},
                "nullable": true,
                "b": {"const": {"type": "string", "nullable": true}}
            }
        });
        let expected = json!({
            "properties": {
                "a": {"type": ["string", "null"], "nullable": true},
                "nullable": true,
                "b": {"const": {"type": "string", "nullable": true}}
            }
        });
        assert_eq!(prepared(&schema), expected);
    }
}
