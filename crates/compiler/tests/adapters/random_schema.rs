//! Schemas of every kind, for property tests.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

/// Whether every schema says which types it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Typed {
    Always,
    Sometimes,
}

/// Parameters: an object with properties, and definitions that its schemas may refer to.
pub(crate) fn parameters(typed: Typed) -> impl Strategy<Value = Value> {
    let property = schema(typed);
    let definitions = [schema(typed), schema(typed)];
    let union =
        proptest::option::weighted(0.2, proptest::collection::vec(object(schema(typed).boxed()), 1..3));
    (proptest::collection::vec(property, 0..4), definitions, union, any::<bool>()).prop_map(
        |(properties, [a, b], union, is_one)| {
            let mut parameters = json!({ "type": "object", "$defs": { "a": a, "b": b } });
            let names = ["p", "q", "r", "s"].map(str::to_owned);
            let properties: Map<_, _> = names.into_iter().zip(properties).collect();
            if !properties.is_empty() {
                parameters["required"] = json!(properties.keys().take(2).collect::<Vec<_>>());
                parameters["properties"] = Value::Object(properties);
            }
            if let Some(branches) = union {
                parameters[if is_one { "oneOf" } else { "anyOf" }] = branches.into();
            }
            parameters
        },
    )
}

fn schema(typed: Typed) -> BoxedStrategy<Value> {
    leaf(typed).prop_recursive(4, 24, 4, move |inner| inside(inner.boxed(), typed)).boxed()
}

fn leaf(typed: Typed) -> BoxedStrategy<Value> {
    let reference = select(vec!["#/$defs/a", "#/$defs/b"]).prop_map(|reference| json!({ "$ref": reference }));
    let always = prop_oneof![
        4 => select(typed_leaves()),
        1 => reference,
    ];
    match typed {
        Typed::Always => always.boxed(),
        Typed::Sometimes => prop_oneof![4 => always, 2 => select(untyped_leaves())].boxed(),
    }
}

fn typed_leaves() -> Vec<Value> {
    vec![
        json!({ "type": "string", "description": "Words." }),
        json!({ "type": "string", "minLength": 2, "maxLength": 8 }),
        json!({ "type": "string", "format": "date" }),
        json!({ "type": "string", "format": "date-time" }),
        json!({ "type": "string", "pattern": "^[a-z]{3}$" }),
        json!({ "type": "string", "enum": ["a", "b", "a"] }),
        json!({ "type": "string", "enum": ["", "b"] }),
        json!({ "type": "string", "const": "c" }),
        json!({ "type": "integer", "enum": [1, 2] }),
        json!({ "type": "integer", "exclusiveMinimum": 2.5, "maximum": 9 }),
        json!({ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "multipleOf": 0.25 }),
        json!({ "type": ["integer", "null"], "minimum": 3 }),
        json!({ "type": ["string", "number"], "minimum": 1, "minLength": 1 }),
        json!({ "type": ["string", "null"], "enum": ["a", null] }),
        json!({ "type": "boolean" }),
        json!({ "type": "null" }),
        json!({ "type": "object", "additionalProperties": { "type": "integer" }, "minProperties": 1 }),
    ]
}

fn untyped_leaves() -> Vec<Value> {
    vec![
        json!(true),
        json!({}),
        json!({ "description": "Anything." }),
        json!({ "type": "array" }),
        json!({ "type": "array", "items": true }),
        json!({ "minLength": 1 }),
        json!({ "maximum": 3 }),
        json!({ "enum": ["a", 1, null] }),
        json!({ "const": { "a": [] } }),
        json!({ "enum": [[1], [2]] }),
        json!({ "required": ["x"] }),
        json!({ "type": [] }),
        json!({ "not": { "type": "string" }, "uniqueItems": true }),
    ]
}

fn inside(inner: BoxedStrategy<Value>, typed: Typed) -> BoxedStrategy<Value> {
    let several = || proptest::collection::vec(inner.clone(), 1..4);
    let described = |union: &'static str| {
        move |(branches, words): (Vec<Value>, bool)| {
            let mut schema = json!({ union: branches });
            if words {
                schema["description"] = "One of these.".into();
            }
            schema
        }
    };
    let always = prop_oneof![
        2 => object(inner.clone()),
        1 => inner.clone().prop_map(|items| json!({ "type": "array", "items": items, "minItems": 1, "uniqueItems": true })),
        1 => several().prop_map(|items| json!({ "type": "array", "minItems": items.len(), "prefixItems": items, "items": false })),
        2 => (several(), any::<bool>()).prop_map(described("anyOf")),
        1 => (several(), any::<bool>()).prop_map(described("oneOf")),
        1 => (object(inner.clone()), object(inner.clone())).prop_map(|(a, b)| json!({ "allOf": [a, b] })),
    ];
    match typed {
        Typed::Always => always.boxed(),
        Typed::Sometimes => prop_oneof![
            5 => always,
            1 => (several(), inner.clone()).prop_map(|(branches, x)| json!({ "properties": { "x": x }, "anyOf": branches })),
            1 => several().prop_map(|branches| json!({ "type": "integer", "nullable": true, "anyOf": branches })),
            1 => several().prop_map(|parts| json!({ "allOf": parts, "maxLength": 3 })),
        ]
        .boxed(),
    }
}

fn object(inner: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    (proptest::collection::vec(inner, 1..3), any::<bool>())
        .prop_map(|(properties, is_closed)| {
            let names = ["x", "y", "z"].map(str::to_owned);
            let properties: Map<_, _> = names.into_iter().zip(properties).collect();
            let mut object =
                json!({ "type": "object", "properties": properties, "required": ["x", "unknown"] });
            object["required"] = json!(["x"]);
            if is_closed {
                object["additionalProperties"] = false.into();
            }
            object
        })
        .boxed()
}
