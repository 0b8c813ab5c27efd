//! The JSON Schema of `schema.json`, generated from [`Definition`] so that editors and the compiler cannot disagree.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::{BUILT_IN_CAPABILITIES, CapabilitySpec, Definition};

/// The schema that editors complete and check a `schema.json` with.
pub fn definition_schema() -> Value {
    definition_schema_with(BUILT_IN_CAPABILITIES)
}

/// The same for a build that knows these capabilities, with which the compiler checks a `schema.json`.
pub fn definition_schema_with(capabilities: &[CapabilitySpec]) -> Value {
    let generated = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Definition>();
    let mut generated = generated.to_value();
    simplify(&mut generated);
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Quarterdeck tool definition (schema.json)",
        "type": "object",
        "additionalProperties": false,
    });
    for part in ["description", "required", "properties"] {
        schema[part] = generated[part].take();
    }
    schema["properties"]["toolId"]["pattern"] = json!("^[a-zA-Z_][a-zA-Z0-9_]{0,63}$");
    let capability = &mut schema["properties"]["capabilities"]["items"];
    capability["enum"] = capabilities.iter().map(|spec| spec.name).collect();
    capability["enumDescriptions"] = capabilities.iter().map(|spec| spec.description).collect();
    let description = schema["properties"]["parameters"]["description"].take();
    schema["properties"]["parameters"] = parameters(description);
    schema
}

/// `parameters` is a schema itself: say so, and say what every tool's root must have.
fn parameters(description: Value) -> Value {
    json!({
        "description": description,
        "type": "object",
        "allOf": [{ "$ref": "https://json-schema.org/draft/2020-12/schema" }],
        "required": ["type", "additionalProperties"],
        "properties": { "type": { "const": "object" }, "additionalProperties": { "const": false } },
    })
}

/// Rewrites the generated schema as a tool author would write it: an absent field is left out
/// rather than null, integers have no machine width, and a choice of words is an `enum`.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(keywords) => {
            keywords.retain(|name, value| {
                name != "format" || value.as_str().is_none_or(|format| !format.contains("int"))
            });
            if let Some(kind) = keywords.get_mut("type") {
                not_null(kind);
            }
            if let Some(words) = choice_of_words(keywords) {
                keywords.remove("oneOf");
                keywords.extend(words);
            }
            keywords.values_mut().for_each(simplify);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        _ => {}
    }
}

fn not_null(kind: &mut Value) {
    if let Value::Array(kinds) = kind {
        kinds.retain(|kind| kind != "null");
        if let [only] = &kinds[..] {
            *kind = only.clone();
        }
    }
}

/// The `enum` that says the same as a `oneOf` of constants. `enumDescriptions` is what editors show beside each.
fn choice_of_words(keywords: &Map<String, Value>) -> Option<[(String, Value); 3]> {
    let branches = keywords.get("oneOf")?.as_array()?;
    let words: Option<Vec<_>> = branches.iter().map(|branch| branch.get("const").cloned()).collect();
    let descriptions: Vec<_> = branches.iter().map(|branch| branch["description"].clone()).collect();
    Some([
        ("type".into(), "string".into()),
        ("enum".into(), words?.into()),
        ("enumDescriptions".into(), descriptions.into()),
    ])
}
