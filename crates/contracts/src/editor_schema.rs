//! The JSON Schema of `schema.json`, generated from [`Definition`] so that editors and the compiler cannot disagree.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::Definition;

/// The schema that editors complete and check a `schema.json` with, and that the compiler checks it with.
pub fn definition_schema() -> Value {
    let generated = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Definition>();
    let mut schema = generated.to_value();
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".into(), "Quarterdeck tool definition (schema.json)".into());
        root.insert("additionalProperties".into(), Value::Bool(false));
        describe_parameters(root);
    }
    schema
}

/// `parameters` is a schema itself: say so, and say what every tool's root must have.
fn describe_parameters(root: &mut serde_json::Map<String, Value>) {
    let Some(parameters) = root.get_mut("properties").and_then(|properties| properties.get_mut("parameters")) else {
        return;
    };
    let description = parameters.get("description").cloned().unwrap_or_default();
    *parameters = json!({
        "description": description,
        "type": "object",
        "allOf": [{ "$ref": "https://json-schema.org/draft/2020-12/schema" }],
        "required": ["type", "additionalProperties"],
        "properties": { "type": { "const": "object" }, "additionalProperties": { "const": false } },
    });
}
