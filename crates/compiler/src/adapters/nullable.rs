//! `nullable` beside `type` is OpenAPI's word for a list of types. Providers that read JSON Schema do not know it.

use serde_json::{Map, Value, json};

const ONE_SCHEMA: [&str; 11] = [
    "items",
    "additionalProperties",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];
const SCHEMAS_BY_NAME: [&str; 5] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
const LISTS_OF_SCHEMAS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];

/// The same schema with `nullable` written as a type of its own.
pub(super) fn spell_out(schema: &Value) -> Value {
    match schema {
        Value::Object(keywords) => Value::Object(spell_out_keywords(keywords)),
        other => other.clone(),
    }
}

fn spell_out_keywords(keywords: &Map<String, Value>) -> Map<String, Value> {
    let kind = keywords.get("type").and_then(Value::as_str);
    let admits_null = keywords.get("nullable") == Some(&Value::Bool(true));
    let mut spelled = Map::new();
    for (keyword, value) in keywords {
        let value = match (keyword.as_str(), kind) {
            ("nullable", Some(_)) if value.is_boolean() => continue,
            ("type", Some(kind)) if admits_null => json!([kind, "null"]),
            (keyword, _) if ONE_SCHEMA.contains(&keyword) => spell_out(value),
            (keyword, _) if SCHEMAS_BY_NAME.contains(&keyword) => each_member(value),
            (keyword, _) if LISTS_OF_SCHEMAS.contains(&keyword) => each_element(value),
            _ => value.clone(),
        };
        spelled.insert(keyword.clone(), value);
    }
    spelled
}

fn each_member(schemas: &Value) -> Value {
    match schemas {
        Value::Object(schemas) => {
            Value::Object(schemas.iter().map(|(name, schema)| (name.clone(), spell_out(schema))).collect())
        }
        other => other.clone(),
    }
}

fn each_element(schemas: &Value) -> Value {
    match schemas {
        Value::Array(schemas) => Value::Array(schemas.iter().map(spell_out).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nullable_becomes_a_type_and_a_property_of_that_name_stays() {
        let schema = json!({
            "type": "object",
            "properties": {
                "nullable": { "type": "boolean" },
                "name": { "type": "string", "nullable": true, "minLength": 1 },
                "list": { "type": "array", "items": { "type": "integer", "nullable": false } },
            },
        });
        assert_eq!(
            spell_out(&schema),
            json!({
                "type": "object",
                "properties": {
                    "nullable": { "type": "boolean" },
                    "name": { "type": ["string", "null"], "minLength": 1 },
                    "list": { "type": "array", "items": { "type": "integer" } },
                },
            })
        );
    }
}
