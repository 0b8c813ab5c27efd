//! Any JSON at all.

use proptest::prelude::*;
use quarterdeck_schema::{Schema, lint};
use serde_json::{Map, Value, json};

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_json_may_be_asked_about_as_a_schema(schema in schema_like()) {
        let is_clean = !lint(&schema).iter().any(|issue| issue.is_error());
        let compiled = Schema::compile(&schema);
        prop_assert!(!is_clean || compiled.is_ok(), "lint approves of what does not compile: {schema}");
    }

    #[test]
    fn any_json_may_be_given_as_arguments(schema in schema_like(), arguments in json_value()) {
        if let Ok(schema) = Schema::compile(&schema) {
            let mut filled = arguments.clone();
            match schema.admit(&mut filled) {
                Ok(_) => prop_assert!(schema.violations(&filled).is_empty()),
                Err(violations) => prop_assert!(!violations.is_empty()),
            }
        }
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..4).prop_map(object),
        ]
    })
}

/// JSON in which keywords stand where they mean something more often than chance would have it.
fn schema_like() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(5, 48, 5, |inner| {
        prop_oneof![
            3 => prop::collection::vec((keyword(), inner.clone()), 0..5).prop_map(object),
            1 => prop::collection::vec((name(), inner.clone()), 0..4).prop_map(object),
            1 => prop::collection::vec(inner, 0..4).prop_map(Value::from),
        ]
    })
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0u8..4).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec![
            "object",
            "string",
            "array",
            "integer",
            "#",
            "#/$defs/a",
            "date",
            "^a(b",
            "a"
        ])
        .prop_map(|text| json!(text)),
        ".{0,8}".prop_map(Value::from),
    ]
}

fn keyword() -> impl Strategy<Value = String> {
    const KEYWORDS: &[&str] = &[
        "type",
        "properties",
        "required",
        "items",
        "prefixItems",
        "contains",
        "minContains",
        "enum",
        "const",
        "default",
        "$ref",
        "$defs",
        "$id",
        "$anchor",
        "$dynamicRef",
        "$dynamicAnchor",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "if",
        "then",
        "else",
        "pattern",
        "patternProperties",
        "additionalProperties",
        "propertyNames",
        "dependentSchemas",
        "dependentRequired",
        "dependencies",
        "unevaluatedItems",
        "unevaluatedProperties",
        "format",
        "minimum",
        "multipleOf",
        "minLength",
        "nullable",
        "uniqueItems",
        "$schema",
    ];
    prop::sample::select(KEYWORDS).prop_map(str::to_owned)
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec!["a", "b", "a/b", "~", "constructor", ""]).prop_map(str::to_owned),
        ".{0,4}"
    ]
}

fn object(members: Vec<(String, Value)>) -> Value {
    Value::Object(members.into_iter().collect::<Map<_, _>>())
}
