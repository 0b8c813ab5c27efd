//! Losses come with arguments that show them.

use std::collections::BTreeMap;
use std::fmt::Write;

use expect_test::expect;
use quarterdeck_compiler::adapters::adapt;
use quarterdeck_compiler::adapters::counter_example::{Hints, find};
use quarterdeck_compiler::adapters::gemini_native::to_json_schema;
use quarterdeck_contracts::{Loss, Provider};
use quarterdeck_schema::Schema;
use quarterdeck_testkit::jsonl;
use serde_json::{Value, json};

use crate::definition::definition;

#[test]
fn each_lost_keyword_is_shown_by_a_value_that_breaks_it_alone() {
    let cases = [
        ("format", json!({ "type": "string", "format": "ipv4", "minLength": 20 })),
        ("non-string enum", json!({ "type": "integer", "enum": [0, 1, 2] })),
        ("non-string enum", json!({ "type": "string", "enum": ["", "x"] })),
        ("exclusiveMinimum", json!({ "type": "number", "exclusiveMinimum": 2.5 })),
        ("exclusiveMaximum", json!({ "type": "number", "exclusiveMaximum": -4 })),
        ("multipleOf", json!({ "type": "integer", "multipleOf": 5, "minimum": 10 })),
        ("uniqueItems", json!({ "type": "array", "items": { "type": "string" }, "uniqueItems": true })),
        ("contains", json!({ "type": "array", "items": { "type": "string" }, "contains": { "const": "a" } })),
        (
            "prefixItems",
            json!({ "type": "array", "prefixItems": [{ "type": "number" }, { "type": "string" }], "items": false, "minItems": 2, "maxItems": 2 }),
        ),
        ("additionalProperties", json!({ "type": "object", "additionalProperties": { "type": "integer" } })),
        ("propertyNames", json!({ "type": "object", "propertyNames": { "pattern": "^[a-z]+$" } })),
        (
            "patternProperties",
            json!({ "type": "object", "patternProperties": { "^x-[0-9]{2}$": { "type": "string" } } }),
        ),
        ("not", json!({ "type": "string", "not": { "const": "no" } })),
        (
            "dependentRequired",
            json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "string" } }, "dependentRequired": { "a": ["b"] } }),
        ),
        (
            "then",
            json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "string" } }, "if": { "required": ["a"] }, "then": { "required": ["b"] } }),
        ),
        ("oneOf", json!({ "oneOf": [{ "type": "integer" }, { "type": "number", "minimum": 0 }] })),
        (
            "anyOf beside properties",
            json!({ "type": "object", "properties": { "a": { "type": "string" } }, "anyOf": [{ "required": ["a"] }] }),
        ),
        (
            "recursive $ref",
            json!({ "type": "object", "properties": { "kid": { "$ref": "#/properties/p" }, "v": { "type": "string" } }, "required": ["v"] }),
        ),
        ("allOf merged", json!({ "type": "integer", "allOf": [{ "minimum": 1 }, { "minimum": 5 }] })),
    ];
    let mut shown = String::new();
    for (what, schema) in cases {
        // Inside a list, to have a way to go.
        let schema = match what {
            "recursive $ref" => schema,
            _ => json!({ "anyOf": [{ "type": "null" }, { "type": "array", "items": schema }] }),
        };
        let loss = losses(&json!({ "type": "object", "properties": { "p": schema } }))
            .into_iter()
            .find(|loss| loss.what == what)
            .unwrap();
        let example =
            loss.counter_example.map_or_else(|| "none".to_owned(), |example| example["p"].to_string());
        writeln!(shown, "{what}: {example}").unwrap();
    }
    expect![[r#"
        format: ["something elseeeeeee"]
        non-string enum: [-1]
        non-string enum: ["something else"]
        exclusiveMinimum: [2.5]
        exclusiveMaximum: [-4]
        multipleOf: [11]
        uniqueItems: [["x","x"]]
        contains: [["x","x"]]
        prefixItems: [[1,1]]
        additionalProperties: [{"extra":"x"}]
        propertyNames: [{"something else":"x"}]
        patternProperties: [{"x-00":0}]
        not: ["no"]
        dependentRequired: [{"a":"x"}]
        then: [{"a":"x"}]
        oneOf: [1]
        anyOf beside properties: [{}]
        recursive $ref: {"v":"x","kid":{"v":"x","kid":{}}}
        allOf merged: [1]
    "#]]
    .assert_eq(&shown);
}

#[test]
fn a_loss_that_lets_nothing_through_has_no_example() {
    for schema in [
        json!({ "type": "object", "additionalProperties": {} }),
        json!({ "type": "object", "propertyNames": { "type": "string" } }),
        json!({ "oneOf": [{ "type": "string" }, { "type": "integer" }] }),
        json!({ "description": "Anything." }),
    ] {
        let losses = losses(&json!({ "type": "object", "properties": { "p": schema } }));
        assert!(losses.iter().all(|loss| loss.counter_example.is_none()), "{losses:?}");
        assert_eq!(losses.len(), 1);
    }
}

#[test]
fn lists_that_double_with_every_level_are_given_up_in_time() {
    let list =
        json!({ "type": "array", "minItems": 3, "uniqueItems": true, "items": { "$ref": "#/$defs/list" } });
    let parameters = json!({
        "type": "object", "additionalProperties": false, "required": ["a"],
        "properties": { "a": { "$ref": "#/$defs/list" }, "b": { "type": "string", "format": "ipv4" } },
        "$defs": { "list": list },
    });
    let started = std::time::Instant::now();
    let _ = adapt(Provider::GeminiNative, &definition(&parameters));
    // Without a bound this takes three to the power of twenty-four steps.
    assert!(started.elapsed().as_secs() < 30);
}

#[test]
fn places_of_one_loss_stand_together() {
    let losses = losses(&json!({
        "type": "object",
        "properties": { "a": { "type": "string", "format": "uri" }, "b": { "type": "string", "format": "uuid" } },
    }));
    assert_eq!(
        losses,
        [Loss {
            what: "format".to_owned(),
            at: vec!["/properties/a/format".to_owned(), "/properties/b/format".to_owned()],
            counter_example: Some(json!({ "a": "something else" })),
            renamed: std::collections::BTreeMap::new(),
        }]
    );
}

#[test]
fn a_narrowed_contract_is_shown_by_a_call_that_used_to_be_accepted() {
    let old = json!({ "type": "object", "additionalProperties": false, "required": ["a"], "properties": {
        "a": { "type": "string", "enum": ["x", "y"] }, "b": { "type": "integer" },
    } });
    for (place, value) in [
        ("/required", json!(["a", "b"])),
        ("/properties/a/enum", json!(["x"])),
        ("/properties/b/type", json!("string")),
        ("/properties/b", json!({ "type": "integer", "maximum": 3 })),
        ("/properties", json!({ "a": { "type": "string", "enum": ["x", "y"] } })),
    ] {
        let mut new = old.clone();
        *new.pointer_mut(place).unwrap() = value;
        let (admits, refuses) = (Schema::compile(&old).unwrap(), Schema::compile(&new).unwrap());
        for places in [vec![place.to_owned()], vec![]] {
            let hints = Hints { admitting: &old, refusing: &new, places: &places };
            let call = find(&admits, &refuses, &hints)
                .unwrap_or_else(|| panic!("nothing for {place} in {places:?}"));
            assert!(admits.accepts(&call) && !refuses.accepts(&call), "{call}");
        }
        let hints = Hints { admitting: &old, refusing: &old, places: &[] };
        assert_eq!(find(&admits, &admits, &hints), None);
    }
}

#[test]
fn losses_of_real_tools_are_shown_unless_they_let_nothing_through() {
    let Some(corpus) = jsonl("schemas/corpus.jsonl") else { return };
    let mut shown: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for row in &corpus {
        let Ok(adapted) = adapt(Provider::GeminiNative, &definition(&row["parameters"])) else { continue };
        // Of tools whose names are awkward, only the examples are looked at.
        let is_renamed = adapted.losses.iter().any(|loss| !loss.renamed.is_empty());
        for loss in adapted.losses {
            let has_example = loss.counter_example.is_some();
            if !is_renamed {
                let count = shown.entry(loss.what).or_default();
                *count = (count.0 + usize::from(has_example), count.1 + 1);
            }
            if let Some(example) = &loss.counter_example {
                let parameters = &adapted.declaration["parameters"];
                assert!(Schema::compile(&to_json_schema(parameters)).unwrap().accepts(example), "{example}");
                assert!(!Schema::compile(&row["parameters"]).unwrap().accepts(example), "{example}");
            }
        }
    }
    // The others are maps of anything, names that are text, branches that cannot overlap, values of any type.
    assert_eq!(shown["format"], (13, 13));
    assert_eq!(shown["non-string enum"], (11, 11));
    assert_eq!(shown["exclusiveMinimum"], (2, 2));
    assert_eq!(shown["additionalProperties"], (4, 13));
    assert_eq!(shown["oneOf"], (1, 3));
    assert_eq!(shown["propertyNames"], (1, 8));
    assert_eq!(shown["untyped schema"], (0, 4));
}

fn losses(parameters: &Value) -> Vec<Loss> {
    adapt(Provider::GeminiNative, &definition(parameters)).unwrap().losses
}
