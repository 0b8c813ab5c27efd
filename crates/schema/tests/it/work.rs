//! The work of judging is bounded. It is counted in steps, because a clock would measure the machine.

use proptest::prelude::*;
use quarterdeck_schema::{Judgement, MAX_STEPS, Schema};
use serde_json::{Map, Value, json};

/// Steps that each unit of schema times value may take.
const STEPS_PER_PAIR: u64 = 8;

#[test]
fn look_around_takes_time_in_proportion_to_the_text() {
    for pattern in [
        "(?<=a+)b",
        "(?=.*a.*b.*c)z",
        "(?<!a*)b",
        "(?=(a+)+$)b",
        "^(?=.*\\d)(?=.*[a-z])(?=.*[A-Z]).{8,}$",
        "(?<=(?<=a*)a*)b",
        "(?!(?=a*b))c",
        "(a|a)*b",
        "(?:a?){50}a{50}c",
    ] {
        let text = format!("{}!", "a".repeat(60_000));
        for (schema, value) in [
            (json!({"type": "string", "pattern": pattern}), json!(text)),
            (json!({"type": "object", "patternProperties": {pattern: false}}), json!({ &text: 1 })),
            (json!({"type": "object", "propertyNames": {"pattern": pattern}}), json!({ &text: 1 })),
        ] {
            let judged = judge(&schema, &value);
            let most = STEPS_PER_PAIR * 2 * pattern.len() as u64 * text.len() as u64;
            assert!(judged.steps <= most.min(MAX_STEPS), "{pattern}: {} steps", judged.steps);
        }
    }
}

#[test]
fn a_value_that_is_too_complex_is_refused_with_a_sentence() {
    let schema = json!({"type": "string", "pattern": "(?=x[ab]{0,5000})b"});
    let judged = judge(&schema, &json!("ab".repeat(100_000)));
    assert_eq!(judged.steps, MAX_STEPS);
    assert_eq!(
        judged.violations.iter().map(|violation| violation.message.as_str()).collect::<Vec<_>>(),
        ["the arguments are too large or too complex to check; send fewer or shorter values"]
    );
}

/// Filters of the kind that real tools have, in the ways a union can be written.
#[test]
fn recursive_unions_are_judged_once_for_each_part() {
    let leaf = json!({"type": "object", "properties": {"field": {"type": "string"}}, "required": ["field"], "additionalProperties": false});
    let with = |name: &str, many: bool| {
        let inner = match many {
            true => json!({"type": "array", "items": {"$ref": "#/$defs/filter"}}),
            false => json!({"$ref": "#/$defs/filter"}),
        };
        json!({"type": "object", "properties": {name: inner}, "required": [name]})
    };
    let branches = json!([
        leaf,
        with("and", true),
        with("or", true),
        with("not", false),
        with("and", true),
        with("not", false)
    ]);
    for filter in [
        json!({ "anyOf": branches }),
        json!({ "oneOf": branches }),
        json!({ "allOf": [{"anyOf": branches}, {"anyOf": branches}] }),
        json!({ "not": {"not": {"anyOf": branches}} }),
        json!({ "if": {"anyOf": branches}, "then": {"anyOf": branches}, "else": {"oneOf": branches} }),
        json!({ "anyOf": branches, "dependentSchemas": {"not": {"anyOf": branches}, "and": {"anyOf": branches}} }),
        json!({ "anyOf": branches, "unevaluatedProperties": false }),
        json!({ "$dynamicAnchor": "f", "anyOf": branches }),
    ] {
        let schema = json!({"type": "object", "properties": {"filter": {"$ref": "#/$defs/filter"}}, "$defs": {"filter": filter}});
        for end in [json!({"field": 3}), json!({"field": "x"}), json!({"fild": "x"}), json!(7)] {
            for name in ["not", "and"] {
                let deep = |levels: usize| {
                    let wrap = |inner: Value| {
                        if name == "and" { json!({ "and": [inner] }) } else { json!({ "not": inner }) }
                    };
                    json!({ "filter": (0..levels).fold(end.clone(), |inner, _| wrap(inner)) })
                };
                let levels = 30;
                let judged = judge(&schema, &deep(levels));
                let most = STEPS_PER_PAIR * (units(&schema) * units(&deep(levels))) + 2_000 * units(&schema);
                assert!(judged.steps <= most, "{filter} {end}: {} steps, allowed {most}", judged.steps);
                // What is small enough to try every way has the verdict that trying every way gives.
                assert_agrees(&schema, &deep(3));
            }
        }
    }
}

/// No recursion is needed: each definition refers to the next one twice.
#[test]
fn references_that_fork_are_followed_once() {
    for fork in ["allOf", "anyOf", "oneOf"] {
        for end in
            [json!({"type": "string"}), json!({"type": "object", "properties": {"a": {"type": "string"}}})]
        {
            let mut definitions = Map::new();
            for index in 0..60 {
                let next = json!({"$ref": format!("#/$defs/d{}", index + 1)});
                definitions.insert(format!("d{index}"), json!({ fork: [next, next] }));
            }
            definitions.insert("d60".to_owned(), end);
            let schema = json!({"$ref": "#/$defs/d0", "$defs": definitions});
            for value in [json!(3), json!("x"), json!({"a": 1})] {
                let judged = judge(&schema, &value);
                assert!(judged.steps < 100_000, "{fork}: {} steps", judged.steps);
            }
        }
    }
}

#[test]
fn defaults_are_filled_within_the_same_bound() {
    let mut definitions = Map::new();
    for index in 0..60 {
        let next = json!({"$ref": format!("#/$defs/d{}", index + 1)});
        definitions.insert(format!("d{index}"), json!({ "allOf": [next, next] }));
    }
    definitions.insert("d60".to_owned(), json!({"type": "object", "properties": {"a": {"default": 1}}}));
    let schema = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions});
    let compiled = Schema::compile(&schema).expect("it compiles");
    let mut value = json!({ "x": {} });
    let judged = compiled.judge(&mut value);
    assert_eq!((value, judged.filled), (json!({ "x": {"a": 1} }), vec!["/x/a".to_owned()]));
    assert!(judged.steps < 100_000, "{} steps", judged.steps);

    let recursive = json!({
        "$ref": "#/$defs/n",
        "$defs": {"n": {
            "type": "object",
            "properties": {"next": {"$ref": "#/$defs/n"}, "size": {"type": "integer", "default": 1}},
            "anyOf": [{"properties": {"next": {"$ref": "#/$defs/n"}}}, {"properties": {"next": {"$ref": "#/$defs/n"}}}]
        }}
    });
    let deep = (0..40).fold(json!({}), |inner, _| json!({ "next": inner }));
    let judged = judge(&recursive, &deep);
    assert_eq!((judged.filled.len(), judged.violations), (41, vec![]));
    assert!(judged.steps < 1_000_000, "{} steps", judged.steps);
}

/// As deep as text can nest, and further: neither the stack nor the budget is used up.
#[test]
fn long_ways_through_a_schema_end() {
    let union = json!({
        "$ref": "#/$defs/n",
        "$defs": {"n": {"anyOf": [{"allOf": [{"$ref": "#/$defs/object"}]}, {"type": "string"}]}, "object": {
            "type": "object", "properties": {"next": {"$ref": "#/$defs/n"}, "size": {"default": 1}}, "required": ["next"]
        }}
    });
    let deep = |end: Value| (0..120).fold(end, |inner, _| json!({ "next": inner }));
    assert!(judge(&union, &deep(json!("x"))).violations.is_empty());
    assert!(!judge(&union, &deep(json!(3))).violations.is_empty());

    for keyword in ["allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas", "properties"] {
        let mut definitions = Map::new();
        for index in 0..5_000 {
            let next = json!({"$ref": format!("#/$defs/d{}", index + 1)});
            let inner = match keyword {
                "allOf" | "anyOf" | "oneOf" => json!([next]),
                "not" | "if" => next,
                _ => json!({ "n": next }),
            };
            definitions.insert(format!("d{index}"), json!({ keyword: inner, "else": true }));
        }
        definitions.insert("d5000".to_owned(), json!({"properties": {"a": {"default": 1}}}));
        let schema = json!({"$ref": "#/$defs/d0", "$defs": definitions});
        match Schema::compile(&schema) {
            Ok(compiled) => {
                assert_eq!(keyword, "properties");
                let judged = compiled.judge(&mut json!({"n": {"n": {}}}));
                assert!(judged.violations.is_empty() && judged.steps < 100_000, "{judged:?}");
            }
            Err(reason) => assert!(keyword != "properties", "{reason}"),
        }
    }
}

/// The parser that judges them recurses as deeply as alternatives go, and its time grows with the square of a class.
#[test]
fn hostile_texts_of_the_format_regex_end() {
    let class: String = (0x4e00..0x9000).step_by(2).filter_map(char::from_u32).collect();
    let schema = json!({"type": "array", "items": {"type": "string", "format": "regex"}});
    let hostile = [
        "a|".repeat(100_000),
        "|".repeat(9_000),
        "(a|".repeat(3_000),
        "(".repeat(100_000),
        "([)]".repeat(2_000),
        format!("[{class}]"),
        "(?<n>".repeat(2_000),
    ];
    for text in hostile {
        let judged = judge(&schema, &json!([text]));
        assert_eq!(judged.violations[0].keyword, "format");
        let pattern = json!({"type": "string", "pattern": text});
        assert!(Schema::compile(&pattern).is_err());
    }
    assert!(judge(&schema, &json!(["a|b", "^[a-z]{2}$", "a|".repeat(900)])).violations.is_empty());
    let many = judge(&schema, &json!(vec!["a|".repeat(900); 1_000]));
    assert!(many.steps <= MAX_STEPS);
}

#[test]
fn a_list_of_errors_is_no_larger_than_it_has_to_be() {
    let schema =
        json!({"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}});
    let judged = judge(&schema, &json!({ "k".repeat(200_000): vec!["x"; 1_000] }));
    let bytes: usize =
        judged.violations.iter().map(|violation| violation.path.len() + violation.message.len()).sum();
    assert!(!judged.violations.is_empty() && bytes < 1_000_000, "{bytes} bytes");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_schema_and_value_are_judged_within_the_bound(schema in schema(), value in value()) {
        let Ok(compiled) = Schema::compile(&schema) else { return Ok(()) };
        let judged = compiled.judge(&mut value.clone());
        // Explaining goes down once more for each of the entries that it may list.
        let most = STEPS_PER_PAIR * units(&schema) * (units(&value) + judged.violations.len() as u64 * 8 + 8);
        prop_assert!(judged.steps <= most.min(MAX_STEPS), "{} steps, allowed {most}: {schema} {value}", judged.steps);
    }

    #[test]
    fn any_verdict_is_that_of_the_validator_crate(schema in schema(), value in value()) {
        let Ok(compiled) = Schema::compile(&schema) else { return Ok(()) };
        let Some(other) = plain_verdict(&schema, &value) else { return Ok(()) };
        prop_assert_eq!(compiled.accepts(&value), other, "{} {}", schema, value);
        prop_assert_eq!(compiled.violations(&value).is_empty(), other, "{} {}", schema, value);
    }

    #[test]
    fn what_is_judged_quickly_is_judged_alike(schema in schema(), value in value()) {
        let Ok(compiled) = Schema::compile(&schema) else { return Ok(()) };
        let (mut quickly, mut wholly) = (value.clone(), value.clone());
        let outcome = compiled.admit_if_quick(&mut quickly);
        prop_assert_eq!(outcome.is_some(), compiled.is_quick(&value));
        let Some(outcome) = outcome else { return Ok(()) };
        let judged = compiled.judge(&mut wholly);
        let expected = if judged.violations.is_empty() { Ok(judged.filled) } else { Err(judged.violations) };
        prop_assert_eq!(outcome, expected, "{} {}", schema, value);
        prop_assert_eq!(quickly, wholly);
    }
}

fn judge(schema: &Value, value: &Value) -> Judgement {
    Schema::compile(schema).expect("it compiles").judge(&mut value.clone())
}

fn assert_agrees(schema: &Value, value: &Value) {
    let compiled = Schema::compile(schema).expect("it compiles");
    let other = plain_verdict(schema, value);
    assert_eq!(Some(compiled.accepts(value)), other, "{schema} {value}");
    assert_eq!(Some(compiled.violations(value).is_empty()), other, "{schema} {value}");
}

/// The validator crate's verdict by itself, which remembers nothing.
fn plain_verdict(schema: &Value, value: &Value) -> Option<bool> {
    let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012);
    options.build(schema).ok().map(|validator| validator.is_valid(value))
}

/// The size of a schema or of a value: its members, items, scalars and characters.
fn units(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(units).sum::<u64>(),
        Value::Object(members) => {
            1 + members.iter().map(|(name, member)| name.len() as u64 + units(member)).sum::<u64>()
        }
        Value::String(text) => 1 + text.len() as u64,
        _ => 1,
    }
}

/// Schemas in which everything refers to everything, so that most of them are recursive and fork.
fn schema() -> impl Strategy<Value = Value> {
    let node = || node().boxed();
    (node(), node(), node()).prop_map(|(a, b, root)| {
        let mut root = if let Value::Object(root) = root { root } else { Map::new() };
        root.insert("$defs".to_owned(), json!({ "a": a, "b": b }));
        Value::Object(root)
    })
}

fn node() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        3 => prop::sample::select(vec!["#", "#/$defs/a", "#/$defs/b"]).prop_map(|to| json!({ "$ref": to })),
        1 => prop::sample::select(vec!["string", "object", "array", "integer"]).prop_map(|name| json!({ "type": name })),
        1 => any::<bool>().prop_map(Value::from),
        1 => prop::sample::select(vec!["^a", "b", "(?<=a)b", "^(?!b)", "[^a]$"]).prop_map(|source| json!({ "pattern": source })),
        1 => Just(json!({ "required": ["a"], "maxLength": 1, "minItems": 1 })),
        1 => Just(json!({ "enum": ["a", 1, {"a": 1}], "uniqueItems": true })),
    ];
    leaf.prop_recursive(4, 20, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..3);
        let list_of = prop::sample::select(vec!["anyOf", "oneOf", "allOf", "prefixItems"]);
        let one_of = prop::sample::select(vec![
            "not",
            "items",
            "contains",
            "propertyNames",
            "additionalProperties",
            "unevaluatedProperties",
            "unevaluatedItems",
        ]);
        let map_of = prop::sample::select(vec!["properties", "dependentSchemas", "patternProperties"]);
        let member = prop::sample::select(vec!["a", "b"]);
        prop_oneof![
            (list_of, list).prop_map(|(keyword, list)| json!({ keyword: list })),
            (one_of, inner.clone()).prop_map(|(keyword, inner)| json!({ keyword: inner })),
            (map_of, member, inner.clone())
                .prop_map(|(keyword, member, inner)| json!({ keyword: { member: inner } })),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(test, then, otherwise)| json!({ "if": test, "then": then, "else": otherwise })),
            (inner.clone(), inner).prop_map(|(left, right)| match (left, right) {
                (Value::Object(mut left), Value::Object(right)) => {
                    left.extend(right);
                    Value::Object(left)
                }
                (left, _) => left,
            }),
        ]
    })
}

fn value() -> impl Strategy<Value = Value> {
    let leaf =
        prop_oneof![Just(Value::Null), (0..2_i32).prop_map(Value::from), "[ab]{0,2}".prop_map(Value::from),];
    leaf.prop_recursive(4, 16, 3, |inner| {
        let name = prop::sample::select(vec!["a".to_owned(), "b".to_owned(), "ab".to_owned()]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}
