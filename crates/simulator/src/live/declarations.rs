//! Function declarations for the chat model behind the simulator.

use serde_json::{Map, Value, json};

use super::client_frame::find;

const MAX_DEPTH: usize = 64;

/// The declarations of a setup as plain functions: name, description and a JSON Schema of the parameters.
pub(super) fn to_functions(declarations: &[Value]) -> Vec<Value> {
    declarations.iter().map(to_function).collect()
}

fn to_function(declaration: &Value) -> Value {
    let name = find(declaration, "name").cloned().unwrap_or_default();
    let description = find(declaration, "description").cloned().unwrap_or_else(|| "".into());
    let parameters = match (find(declaration, "parametersJsonSchema"), find(declaration, "parameters")) {
        (Some(schema), _) => schema.clone(),
        (None, Some(native)) => json_schema(native, 0),
        (None, None) => json!({ "type": "object", "properties": {} }),
    };
    json!({ "name": name, "description": description, "parameters": parameters })
}

/// Gemini's own dialect writes types in capitals.
fn json_schema(native: &Value, depth: usize) -> Value {
    match native {
        Value::Object(fields) if depth < MAX_DEPTH => {
            let field = |(name, value): (&String, &Value)| {
                let value = match (name.as_str(), value) {
                    ("type", Value::String(kind)) => Value::String(kind.to_lowercase()),
                    _ => json_schema(value, depth + 1),
                };
                (name.clone(), value)
            };
            Value::Object(fields.iter().map(field).collect::<Map<_, _>>())
        }
        Value::Array(items) if depth < MAX_DEPTH => {
            items.iter().map(|item| json_schema(item, depth + 1)).collect()
        }
        other => other.clone(),
    }
}
