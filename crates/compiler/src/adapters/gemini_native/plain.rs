//! The dialect back in JSON Schema, to ask what it admits.

use serde_json::{Map, Value};

/// What a converted schema admits, as JSON Schema.
///
/// Objects stay open. The dialect cannot close one; whether a model would ever use a name that was not declared is
/// another question.
pub fn to_json_schema(converted: &Value) -> Value {
    let Some(keywords) = converted.as_object() else { return Value::Bool(true) };
    let nullable = keywords.get("nullable") == Some(&Value::Bool(true));
    let mut plain = Map::new();
    for (keyword, value) in keywords {
        let value = match (keyword.as_str(), value) {
            ("description" | "nullable", _) => continue,
            ("type", Value::String(name)) if nullable => vec![name.to_lowercase(), "null".to_owned()].into(),
            ("type", Value::String(name)) => name.to_lowercase().into(),
            ("enum", Value::Array(values)) if nullable => {
                values.iter().cloned().chain([Value::Null]).collect()
            }
            ("items", items) => to_json_schema(items),
            ("anyOf", Value::Array(branches)) => branches.iter().map(to_json_schema).collect(),
            ("properties", Value::Object(properties)) => {
                let plain = properties.iter().map(|(name, schema)| (name.clone(), to_json_schema(schema)));
                Value::Object(plain.collect())
            }
            (_, value) => value.clone(),
        };
        plain.insert(keyword.clone(), value);
    }
    Value::Object(plain)
}
