//! Writes the document's schemas as TypeScript types, which hold the pages' modules to the API.

use expect_test::expect_file;
use quarterdeck_contracts::PROTOCOL_MESSAGE_TYPES;
use serde_json::{Map, Value};

use super::document;
use super::schemas::{Schemas, schema_of};
use crate::voice::VoiceMessage;

#[test]
fn the_pages_types_follow_the_document() {
    let mut text = String::from(
        "// Generated from the HTTP shapes; rewrite it with\n\
         //   UPDATE_EXPECT=1 cargo test -p quarterdeck-server the_pages_types_follow_the_document\n\
         // tests/browser/tsconfig.json makes the names known to the pages' modules.\n\n\
         declare namespace Api {\n",
    );
    let document = document();
    let mut types = document["components"]["schemas"].as_object().cloned().unwrap();
    // OpenAPI does not describe WebSockets, but the page reads these messages.
    let mut schemas = Schemas::new();
    schemas.response(schema_of::<VoiceMessage<'_>>());
    types.extend(schemas.components());
    for (name, schema) in &types {
        text.push_str(&format!("  type {name} = {};\n", type_of(schema)));
    }
    text.push_str("}\n");
    expect_file!["../../../api-types.d.ts"].assert_eq(&text);
}

/// A type that a tool may send under rules of its own.
const OPEN_TYPE: &str = "timeout";

#[test]
fn the_voice_messages_are_reserved() {
    let mut schemas = Schemas::new();
    schemas.response(schema_of::<VoiceMessage<'_>>());
    let members = schemas.components()["VoiceMessage"]["oneOf"].clone();
    let types =
        members.as_array().unwrap().iter().map(|member| member["properties"]["type"]["const"].clone());
    let types: Vec<String> = types.map(|kind| kind.as_str().unwrap().to_owned()).collect();
    assert!(types.len() > 10, "{types:?}");
    for kind in types.iter().filter(|kind| *kind != OPEN_TYPE) {
        assert!(PROTOCOL_MESSAGE_TYPES.contains(&kind.as_str()), "{kind}");
    }
}

fn type_of(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        return reference.rsplit('/').next().unwrap().to_owned();
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    for union in ["enum", "oneOf", "anyOf"] {
        if let Some(members) = schema[union].as_array() {
            let literal = union == "enum";
            let types =
                members.iter().map(|member| if literal { member.to_string() } else { type_of(member) });
            return types.collect::<Vec<_>>().join(" | ");
        }
    }
    match &schema["type"] {
        Value::String(kind) => type_named(kind, schema),
        Value::Array(kinds) => {
            let types = kinds.iter().map(|kind| type_named(kind.as_str().unwrap(), schema));
            types.collect::<Vec<_>>().join(" | ")
        }
        _ => "any".to_owned(),
    }
}

fn type_named(kind: &str, schema: &Value) -> String {
    match kind {
        "integer" | "number" => "number".to_owned(),
        "array" => {
            let item = type_of(&schema["items"]);
            if item.contains('|') { format!("({item})[]") } else { format!("{item}[]") }
        }
        "object" => match (schema["properties"].as_object(), &schema["additionalProperties"]) {
            (Some(properties), _) => object(properties, &schema["required"]),
            (None, Value::Object(_)) => {
                format!("Record<string, {}>", type_of(&schema["additionalProperties"]))
            }
            _ => "Record<string, any>".to_owned(),
        },
        plain => plain.to_owned(),
    }
}

fn object(properties: &Map<String, Value>, required: &Value) -> String {
    let is_required =
        |name: &str| required.as_array().is_some_and(|names| names.iter().any(|one| one == name));
    let field = |(name, schema): (&String, &Value)| {
        let mark = if is_required(name) { "" } else { "?" };
        format!("{name}{mark}: {}", type_of(schema))
    };
    format!("{{ {} }}", properties.iter().map(field).collect::<Vec<_>>().join("; "))
}
