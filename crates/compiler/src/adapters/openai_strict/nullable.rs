//! Lets a strict schema admit null as well.

use serde_json::{Value, json};

/// `schema`, or null.
pub(super) fn nullable(mut schema: Value) -> Value {
    let Some(keywords) = schema.as_object_mut() else { return schema };
    if let Some(branches) = keywords.get_mut("anyOf").and_then(Value::as_array_mut) {
        let null = json!({ "type": "null" });
        if !branches.contains(&null) {
            branches.push(null);
        }
        return schema;
    }
    if keywords.contains_key("$ref") || !keywords.contains_key("type") && !keywords.contains_key("enum") {
        let description = keywords.shift_remove("description");
        let mut either = json!({ "anyOf": [schema, { "type": "null" }] });
        if let Some(description) = description {
            either["description"] = description;
        }
        return either;
    }
    if let Some(kind) = keywords.get_mut("type") {
        add_null_type(kind);
    }
    // A type that allows null does not help while the listed values do not.
    if let Some(only) = keywords.shift_remove("const") {
        keywords.insert("enum".to_owned(), json!([only]));
    }
    if let Some(values) = keywords.get_mut("enum").and_then(Value::as_array_mut)
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    schema
}

fn add_null_type(kind: &mut Value) {
    let null = Value::from("null");
    match kind {
        Value::Array(names) if !names.contains(&null) => names.push(null),
        Value::String(name) if name != "null" => *kind = json!([name, "null"]),
        _ => {}
    }
}
