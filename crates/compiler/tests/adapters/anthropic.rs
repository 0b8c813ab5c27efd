//! Anthropic's form.

use quarterdeck_compiler::adapters::adapt;
use quarterdeck_contracts::Provider;
use serde_json::{Value, json};

use crate::definition::definition;

#[test]
fn the_declaration_names_its_schema_input_schema() {
    let parameters = json!({ "type": "object", "properties": { "a.b-c": { "type": "string" } } });
    let adapted = adapt(Provider::Anthropic, &definition(&parameters)).unwrap();
    assert_eq!(
        adapted.declaration,
        json!({ "name": "book_table", "description": "Books a table.", "input_schema": parameters })
    );
}

#[test]
fn references_are_written_out_and_their_definitions_go() {
    check(
        json!({
            "type": "object",
            "properties": { "a": { "$ref": "#/$defs/outer" }, "b": { "$ref": "#/$defs/inner", "description": "B." } },
            "$defs": {
                "outer": { "type": "array", "items": { "$ref": "#/$defs/inner" } },
                "inner": { "type": "string", "description": "Inner." },
            },
        }),
        json!({
            "type": "object",
            "properties": {
                "a": { "type": "array", "items": { "type": "string", "description": "Inner." } },
                "b": { "type": "string", "description": "B." },
            },
        }),
    );
}

#[test]
fn keywords_beside_a_reference_keep_their_meaning() {
    check(
        json!({
            "type": "object",
            "properties": { "a": { "$ref": "#/$defs/o", "additionalProperties": false } },
            "$defs": { "o": { "type": "object", "properties": { "x": {} } } },
        }),
        json!({
            "type": "object",
            "properties": {
                "a": { "additionalProperties": false, "allOf": [{ "type": "object", "properties": { "x": {} } }] },
            },
        }),
    );
}

#[test]
fn a_recursive_reference_stays_with_its_definition() {
    let parameters = json!({
        "type": "object",
        "properties": { "tree": { "$ref": "#/$defs/node" } },
        "$defs": { "node": { "type": "object", "properties": { "kids": { "type": "array", "items": { "$ref": "#/$defs/node" } } } } },
    });
    check(parameters.clone(), parameters);
}

#[test]
fn a_word_that_looks_like_a_reference_is_left_alone() {
    let parameters = json!({
        "type": "object",
        "properties": { "$ref": { "type": "string", "const": { "$ref": "#/nowhere" }, "default": { "$ref": "#" } } },
    });
    let adapted = adapt(Provider::Anthropic, &definition(&parameters)).unwrap();
    assert_eq!(adapted.losses.len(), 1, "only the name itself: {:?}", adapted.losses);
    assert_eq!(adapted.losses[0].at, ["/properties/$ref"]);
}

#[test]
fn everything_that_is_composed_at_the_root_is_reported() {
    let parameters = json!({
        "anyOf": [{ "required": ["a"] }],
        "oneOf": [],
        "properties": { "a": { "$ref": "#/$defs/d" }, "b": { "$ref": "#/$defs/d" } },
        "$defs": { "d": { "type": "object", "properties": { "ä": {} } } },
    });
    let refusals = adapt(Provider::Anthropic, &definition(&parameters)).unwrap_err();
    let places: Vec<_> = refusals.iter().map(|refusal| refusal.at.as_str()).collect();
    assert_eq!(places, ["", "/anyOf", "/oneOf"]);
}

#[test]
fn a_root_that_is_composed_only_by_inlining_is_refused_at_the_root() {
    let parameters =
        json!({ "type": "object", "$ref": "#/$defs/d", "$defs": { "d": { "minProperties": 1 } } });
    let refusals = adapt(Provider::Anthropic, &definition(&parameters)).unwrap_err();
    assert_eq!(refusals.iter().map(|refusal| refusal.at.as_str()).collect::<Vec<_>>(), [""]);
}

fn check(parameters: Value, expected: Value) {
    let adapted = adapt(Provider::Anthropic, &definition(&parameters)).unwrap();
    assert_eq!(adapted.declaration["input_schema"], expected);
    assert_eq!(adapted.losses, []);
}
