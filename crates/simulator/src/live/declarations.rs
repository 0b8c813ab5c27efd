//! Function declarations for the chat model behind the simulator.

use quarterdeck_contracts::Provider;
use serde_json::{Map, Value, json};

use super::client_frame::find;

const MAX_DEPTH: usize = 64;

/// The declarations of a setup, in the form that a chat model asks for.
pub(super) fn convert(declarations: &[Value], frame_kind: Provider) -> Vec<Value> {
    declarations.iter().map(|declaration| one(declaration, frame_kind)).collect()
}

/// What is said instead of an answer to speech.
pub(super) fn no_speech_recognition(is_first: bool) -> String {
    let honest = "I heard you, but this is a simulator without speech recognition, so please type.";
    match is_first {
        true => format!("{honest} Typing works as it always does: try “What can you do?”."),
        false => honest.to_owned(),
    }
}

fn one(declaration: &Value, frame_kind: Provider) -> Value {
    let name = find(declaration, "name").cloned().unwrap_or_default();
    let description = find(declaration, "description").cloned().unwrap_or_else(|| "".into());
    let schema = match (find(declaration, "parametersJsonSchema"), find(declaration, "parameters")) {
        (Some(schema), _) => schema.clone(),
        (None, Some(native)) => json_schema(native, 0),
        (None, None) => json!({ "type": "object", "properties": {} }),
    };
    match frame_kind {
        Provider::Openai | Provider::OpenaiStrict => json!({ "type": "function", "function": {
            "name": name, "description": description, "parameters": schema,
        } }),
        Provider::Anthropic => json!({ "name": name, "description": description, "input_schema": schema }),
        Provider::Mcp => json!({ "name": name, "description": description, "inputSchema": schema }),
        Provider::GeminiNative | Provider::GeminiJsonSchema => declaration.clone(),
    }
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
