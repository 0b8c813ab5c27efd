//! No schema makes an adapter panic, hang or explode.

use std::time::{Duration, Instant};

use quarterdeck_compiler::adapters::adapt;
use quarterdeck_contracts::Provider;
use serde_json::{Map, Value, json};

use crate::definition::definition;

#[test]
fn definitions_that_double_at_every_level_are_refused_not_written_out() {
    for pair in [
        |next: String| json!({ "type": "object", "properties": { "a": { "$ref": next }, "b": { "$ref": next } } }),
        |next: String| json!({ "allOf": [{ "$ref": next }, { "$ref": next }] }),
        |next: String| json!({ "anyOf": [{ "$ref": next }, { "$ref": next }] }),
    ] {
        let mut definitions = Map::new();
        for level in 0..30 {
            definitions.insert(format!("d{level}"), pair(format!("#/$defs/d{}", level + 1)));
        }
        definitions.insert("d30".to_owned(), json!({ "type": "string" }));
        let parameters = json!({ "type": "object", "properties": { "p": { "$ref": "#/$defs/d0" } }, "$defs": definitions });
        for provider in [Provider::GeminiNative, Provider::Anthropic, Provider::OpenaiStrict] {
            let started = Instant::now();
            let refusals = adapt(provider, &definition(&parameters)).unwrap_err();
            assert!(refusals[0].reason.contains("written out"), "{refusals:?}");
            assert!(started.elapsed() < Duration::from_secs(5));
        }
    }
}

#[test]
fn schemas_that_are_very_deep_are_refused() {
    let mut schema = json!({ "type": "string" });
    for _ in 0..300 {
        schema = json!({ "type": "array", "items": schema });
    }
    let parameters = json!({ "type": "object", "properties": { "p": schema } });
    for provider in [Provider::GeminiNative, Provider::Anthropic, Provider::OpenaiStrict] {
        assert!(adapt(provider, &definition(&parameters)).is_err(), "{provider}");
    }
}

#[test]
fn malformed_schemas_do_no_harm() {
    let odd = [
        json!(null),
        json!(1),
        json!("x"),
        json!([]),
        json!(true),
        json!({ "$ref": "#" }),
        json!({ "$ref": 1 }),
        json!({ "type": 1, "properties": [], "required": {}, "items": 3, "anyOf": {}, "allOf": 1, "enum": 7 }),
        json!({ "type": ["null"], "anyOf": [], "oneOf": [1, null, []], "enum": [] }),
        json!({ "type": "any", "minimum": "1", "exclusiveMinimum": true, "minLength": -1, "pattern": 3, "format": {} }),
        json!({ "type": "object", "properties": { "a": 1, "b": null, "$ref": { "$ref": "#/properties/$ref" } } }),
        json!({ "type": "integer", "exclusiveMinimum": 1e308, "exclusiveMaximum": i64::MIN }),
        json!({ "type": "array", "prefixItems": [], "items": [] }),
        json!({ "additionalProperties": [], "const": { "$ref": "#/nowhere" } }),
    ];
    for schema in odd {
        let inside = json!({ "type": "object", "properties": { "p": schema }, "required": ["p"] });
        for parameters in [&schema, &inside] {
            for provider in Provider::ALL {
                let _: Result<_, _> = adapt(provider, &definition(parameters));
            }
        }
    }
}

#[test]
fn adapting_twice_gives_the_same() {
    let parameters: Value = json!({
        "type": "object",
        "properties": { "a": { "type": "string", "format": "email" }, "b": { "type": "integer", "enum": [1, 2] } },
    });
    for provider in Provider::ALL {
        assert_eq!(adapt(provider, &definition(&parameters)), adapt(provider, &definition(&parameters)));
    }
}
