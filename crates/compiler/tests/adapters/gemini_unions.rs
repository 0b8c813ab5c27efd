//! Gemini's dialect: unions in all their forms.

use serde_json::json;

use crate::gemini_native::{check, check_root};

#[test]
fn null_branches_become_nullable() {
    check(
        json!({ "oneOf": [{ "type": "null" }, { "type": "string", "minLength": 1, "description": "Inner." }], "description": "Outer." }),
        json!({ "type": "STRING", "nullable": true, "description": "Outer.", "minLength": 1 }),
        &["oneOf"],
    );
    check(
        json!({ "anyOf": [{ "const": null }, { "enum": [null] }] }),
        json!({ "type": "STRING", "nullable": true }),
        &[],
    );
}

#[test]
fn the_only_branch_is_merged_and_the_node_fills_gaps() {
    check(
        json!({ "type": "string", "minLength": 2, "maxLength": 9, "anyOf": [{ "maxLength": 5, "description": "Inner." }] }),
        json!({ "type": "STRING", "description": "Inner.", "minLength": 2, "maxLength": 5 }),
        &[],
    );
}

#[test]
fn text_literals_become_one_enum() {
    check(
        json!({ "oneOf": [{ "const": "a", "title": "A" }, { "type": "string", "enum": ["b", "a"] }], "description": "Pick." }),
        json!({ "type": "STRING", "description": "Pick.", "enum": ["a", "b"] }),
        &["oneOf"],
    );
    check(
        json!({ "anyOf": [{ "const": "a" }, { "const": "b" }, { "type": "null" }] }),
        json!({ "type": "STRING", "nullable": true, "enum": ["a", "b"] }),
        &[],
    );
    check(
        json!({ "anyOf": [{ "const": "a" }, { "const": 1 }] }),
        json!({ "anyOf": [{ "type": "STRING", "enum": ["a"] }, { "type": "INTEGER", "description": "Allowed values: 1." }] }),
        &["non-string enum"],
    );
}

#[test]
fn a_union_stands_alone_and_its_words_move_to_the_first_branch() {
    check(
        json!({ "anyOf": [{ "type": "string", "description": "A name." }, { "type": "integer" }], "description": "Who." }),
        json!({ "anyOf": [{ "type": "STRING", "description": "Who. A name." }, { "type": "INTEGER" }] }),
        &[],
    );
}

#[test]
fn nested_unions_are_flattened_and_duplicates_removed() {
    check(
        json!({ "anyOf": [
            { "type": "string" },
            { "oneOf": [{ "type": "integer" }, { "type": "string" }], "description": "Inner." },
            { "type": ["integer", "boolean"] },
        ] }),
        json!({ "anyOf": [
            { "type": "STRING" }, { "type": "INTEGER", "description": "Inner." }, { "type": "INTEGER" }, { "type": "BOOLEAN" },
        ] }),
        &["oneOf"],
    );
    check(
        json!({ "anyOf": [{ "type": "string", "default": "a" }, { "type": "string" }], "description": "Same." }),
        json!({ "type": "STRING", "description": "Same." }),
        &[],
    );
}

#[test]
fn what_stands_beside_a_union_holds_in_every_branch() {
    check(
        json!({ "type": "integer", "maximum": 9, "anyOf": [{ "minimum": 5 }, { "maximum": 1 }] }),
        json!({ "anyOf": [{ "type": "INTEGER", "minimum": 5, "maximum": 9 }, { "type": "INTEGER", "maximum": 1 }] }),
        &[],
    );
}

#[test]
fn several_types_become_a_union_of_their_own_keywords() {
    check(
        json!({ "type": ["string", "integer", "null"], "minLength": 1, "minimum": 2, "format": "email", "description": "Id." }),
        json!({ "anyOf": [
            { "type": "STRING", "nullable": true, "description": "Id. Format: email.", "minLength": 1 },
            { "type": "INTEGER", "nullable": true, "minimum": 2 },
        ] }),
        &["format"],
    );
    check(
        json!({ "type": ["string", "integer"], "enum": ["a", "b"] }),
        json!({ "type": "STRING", "enum": ["a", "b"] }),
        &[],
    );
    check(
        json!({ "type": ["object", "string"], "properties": { "a": { "type": "string" } }, "required": ["a"] }),
        json!({ "anyOf": [
            { "type": "OBJECT", "properties": { "a": { "type": "STRING" } }, "required": ["a"] }, { "type": "STRING" },
        ] }),
        &[],
    );
}

#[test]
fn references_inside_unions_are_followed() {
    check_root(
        json!({
            "type": "object",
            "properties": { "p": { "anyOf": [{ "$ref": "#/$defs/nothing" }, { "$ref": "#/$defs/both" }] } },
            "$defs": { "nothing": { "type": "null" }, "both": { "anyOf": [{ "type": "string" }, { "type": "number" }] } },
        }),
        json!({ "type": "OBJECT", "properties": { "p": { "anyOf": [
            { "type": "STRING", "nullable": true }, { "type": "NUMBER", "nullable": true },
        ] } } }),
        &[],
    );
}

#[test]
fn a_union_beside_properties_is_dropped_at_any_depth() {
    let object = |kind: &str, text: &str| json!({ "type": kind, "properties": { "a": { "type": text } } });
    let mut schema = object("object", "string");
    schema["oneOf"] = json!([{ "required": ["a"] }, { "maxProperties": 0 }]);
    check(schema, object("OBJECT", "STRING"), &["oneOf", "oneOf beside properties"]);
}

#[test]
fn a_root_union_is_united() {
    check_root(
        json!({
            "type": "object",
            "anyOf": [
                { "properties": { "id": { "type": "string" }, "n": { "type": "integer" } }, "required": ["id", "n"] },
                { "$ref": "#/$defs/other" },
            ],
            "$defs": { "other": { "properties": { "id": { "type": "integer" }, "m": { "type": "boolean" } }, "required": ["m", "id"] } },
        }),
        json!({
            "type": "OBJECT",
            "properties": {
                "id": { "anyOf": [{ "type": "STRING" }, { "type": "INTEGER" }] },
                "n": { "type": "INTEGER" },
                "m": { "type": "BOOLEAN" },
            },
            "required": ["id"],
        }),
        &["anyOf beside properties"],
    );
}
