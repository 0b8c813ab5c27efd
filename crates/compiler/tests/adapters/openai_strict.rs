//! OpenAI's strict form.

use quarterdeck_compiler::adapters::adapt;
use quarterdeck_compiler::adapters::counter_example::instance;
use quarterdeck_contracts::Provider;
use quarterdeck_schema::Schema;
use quarterdeck_testkit::jsonl;
use serde_json::{Value, json};

use crate::definition::definition;

#[test]
fn every_property_is_required_and_the_optional_ones_are_nullable() {
    check(
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["a"],
            "properties": {
                "a": { "type": "string", "title": "A", "default": "x", "format": "email" },
                "b": { "type": "integer", "minimum": 1, "description": "B." },
                "c": { "type": "string", "enum": ["x"] },
                "d": { "const": 3, "description": "D." },
                "e": { "anyOf": [{ "type": "string" }, { "type": "number" }] },
                "f": { "type": ["string", "null"] },
            },
        }),
        json!({
            "type": "object",
            "properties": {
                "a": { "type": "string", "format": "email" },
                "b": { "type": ["integer", "null"], "minimum": 1, "description": "B." },
                "c": { "type": ["string", "null"], "enum": ["x", null] },
                "d": { "anyOf": [{ "const": 3 }, { "type": "null" }], "description": "D." },
                "e": { "anyOf": [{ "type": "string" }, { "type": "number" }, { "type": "null" }] },
                "f": { "type": ["string", "null"] },
            },
            "required": ["a", "b", "c", "d", "e", "f"],
            "additionalProperties": false,
        }),
    );
}

#[test]
fn nested_objects_are_closed_and_recursion_is_kept() {
    check(
        json!({
            "type": "object",
            "properties": { "tree": { "$ref": "#/$defs/node" } },
            "$defs": { "node": { "type": "object", "required": ["v"], "properties": {
                "v": { "type": "string" }, "next": { "$ref": "#/$defs/node" },
            } } },
        }),
        json!({
            "type": "object",
            "$defs": { "node": {
                "type": "object",
                "properties": { "v": { "type": "string" }, "next": { "anyOf": [{ "$ref": "#/$defs/node" }, { "type": "null" }] } },
                "required": ["v", "next"],
                "additionalProperties": false,
            } },
            "properties": { "tree": { "anyOf": [{ "$ref": "#/$defs/node" }, { "type": "null" }] } },
            "required": ["tree"],
            "additionalProperties": false,
        }),
    );
}

#[test]
fn a_tool_without_arguments_can_be_strict() {
    check(
        json!({ "type": "object", "additionalProperties": false }),
        json!({ "type": "object", "properties": {}, "required": [], "additionalProperties": false }),
    );
}

#[test]
fn every_blocker_is_reported_where_it_is_written() {
    let parameters = json!({
        "type": "object",
        "properties": {
            "a": { "type": "string", "minLength": 1, "maxLength": 5 },
            "b": { "type": "object", "additionalProperties": { "type": "string" } },
            "c": { "type": "array" },
            "d": {},
            "e": { "$ref": "#/$defs/e" },
            "f": { "$ref": "#/$defs/e" },
            "g": true,
        },
        "$defs": { "e": { "type": "array", "items": { "type": "string" }, "uniqueItems": true } },
    });
    let refusals = adapt(Provider::OpenaiStrict, &definition(&parameters)).unwrap_err();
    let places: Vec<_> = refusals.iter().map(|refusal| refusal.at.as_str()).collect();
    assert_eq!(
        places,
        [
            "/properties/a/minLength",
            "/properties/a/maxLength",
            "/properties/b",
            "/properties/c",
            "/properties/d",
            "/$defs/e/uniqueItems",
            "/properties/g",
        ]
    );
}

#[test]
fn the_limits_of_strict_schemas_are_kept() {
    let mut deep = json!({ "type": "string" });
    for _ in 0..10 {
        deep = json!({ "type": "object", "properties": { "o": deep } });
    }
    blocked(json!({ "deep": deep }), "nests at most 10 objects");
    let values: Vec<_> = (0..1_001).map(|n| n.to_string()).collect();
    blocked(json!({ "many": { "type": "string", "enum": values } }), "at most 1000 listed values");
    let long: Vec<_> = (0..251).map(|n| format!("{n:060}")).collect();
    blocked(json!({ "long": { "type": "string", "enum": long } }), "at most 15000 characters");
    let many: serde_json::Map<_, _> =
        (0..5_001).map(|n| (format!("p{n}"), json!({ "type": "string" }))).collect();
    blocked(Value::Object(many), "at most 5000 properties");
}

#[test]
fn real_tools_mean_the_same_in_strict_form() {
    let mut judged = 0;
    for row in jsonl("schemas/corpus.jsonl").unwrap_or_default() {
        let Ok(adapted) = adapt(Provider::OpenaiStrict, &definition(&row["parameters"])) else { continue };
        let strict = &adapted.declaration["function"]["parameters"];
        let original = Schema::compile(&row["parameters"]).unwrap();
        // Every property is there, so no null has to be dropped.
        let arguments = instance(strict);
        // Some tools have a property that nothing satisfies, such as an array that is one of several texts.
        if Schema::compile(strict).unwrap().accepts(&arguments) {
            assert!(original.accepts(&arguments), "{}: {arguments}", row["id"]);
            judged += 1;
        }
    }
    assert!(judged == 0 || judged > 300, "only {judged} tools could be strict");
}

fn blocked(properties: Value, reason: &str) {
    let parameters = json!({ "type": "object", "properties": properties });
    let refusals = adapt(Provider::OpenaiStrict, &definition(&parameters)).unwrap_err();
    assert!(refusals.len() == 1 && refusals[0].reason.contains(reason), "{reason}: {refusals:?}");
}

fn check(parameters: Value, expected: Value) {
    let adapted = adapt(Provider::OpenaiStrict, &definition(&parameters)).unwrap();
    assert_eq!(adapted.declaration["function"]["parameters"], expected);
    assert_eq!(adapted.declaration["function"]["strict"], true);
    assert_eq!(adapted.losses, []);
}
