//! Schemas and values that mean harm: a sane answer, soon.

use std::time::{Duration, Instant};

use quarterdeck_schema::{LintIssue, Rule, Schema, lint};
use serde_json::{Map, Value, json};

#[test]
fn a_schema_nested_thousands_deep_is_refused() {
    let deep = nested(json!({"type": "string"}), "not", 20_000);
    let issues = soon(|| lint(&deep));
    assert_eq!(rules(&issues), [Rule::TooLarge]);
    assert!(soon(|| Schema::compile(&deep)).is_err());
    unnest(deep);
}

#[test]
fn a_value_nested_thousands_deep_is_refused_by_a_recursive_schema() {
    let schema = Schema::compile(
        &json!({"type": "object", "properties": {"next": {"$ref": "#"}, "n": {"default": 1}}}),
    )
    .expect("it compiles");
    let mut deep = nested(json!({}), "next", 20_000);
    let violations = soon(|| schema.admit(&mut deep)).expect_err("it is too deep");
    assert_eq!(violations.len(), 1);
    unnest(deep);
}

#[test]
fn references_in_circles_are_refused() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
        json!({"$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}),
        json!({"type": "object", "dependentSchemas": {"a": {"$ref": "#"}}}),
    ] {
        let issues = soon(|| lint(&schema));
        assert!(rules(&issues).contains(&Rule::EndlessReference), "{schema}: {issues:?}");
        assert!(Schema::compile(&schema).is_err(), "{schema}");
    }
}

#[test]
fn a_long_chain_of_references_ends() {
    let mut definitions = Map::new();
    for index in 0..5_000 {
        let next = format!("#/$defs/d{}", index + 1);
        definitions
            .insert(format!("d{index}"), json!({"type": "object", "properties": {"n": {"$ref": next}}}));
    }
    definitions.insert("d5000".to_owned(), json!({"type": "string"}));
    let schema = json!({"type": "object", "properties": {"n": {"$ref": "#/$defs/d0"}}, "$defs": definitions});
    let issues = within(Duration::from_secs(5), || lint(&schema));
    assert!(issues.len() <= 1, "{issues:?}");
}

#[test]
fn references_that_multiply_are_bounded() {
    let large: Map<String, Value> =
        (0..1_000).map(|index| (format!("p{index}"), json!({"type": "string"}))).collect();
    let references: Map<String, Value> =
        (0..1_000).map(|index| (format!("r{index}"), json!({"$ref": "#/$defs/large"}))).collect();
    let schema = json!({
        "type": "object",
        "properties": references,
        "$defs": {"large": {"type": "object", "properties": large}}
    });
    let issues = within(Duration::from_secs(10), || lint(&schema));
    assert_eq!(rules(&issues), [Rule::TooLarge]);
}

#[test]
fn patterns_without_a_bound_are_refused() {
    let nested_groups = format!("{}a{}", "(".repeat(50_000), ")".repeat(50_000));
    let sly_groups = format!("{}a{}", "([)]".repeat(10_000), ")".repeat(10_000));
    for pattern in [
        "^(a|b)\\1$",
        "^(?=(a+)+$)(a|a)+\\1$",
        "(?<n>a)\\k<n>",
        "(a{1000}){1000}",
        "((a{100}){100}){100}",
        "(?:(?:){1000}){100000}",
        "(?=(a{1000}){1000})",
        &nested_groups,
        &sly_groups,
    ] {
        for schema in [
            json!({"type": "string", "pattern": pattern}),
            json!({"type": "object", "patternProperties": {pattern: {"type": "string"}}}),
        ] {
            let issues = within(Duration::from_secs(5), || lint(&schema));
            assert_eq!(rules(&issues), [Rule::UnboundedPattern]);
            assert!(!issues[0].help.is_empty());
            assert!(Schema::compile(&schema).is_err());
        }
    }
}

#[test]
fn ten_thousand_properties_are_many_but_not_too_many() {
    let properties: Map<String, Value> = (0..10_000)
        .map(|index| (format!("p{index}"), json!({"type": "integer", "default": index})))
        .collect();
    let schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    assert_eq!(within(Duration::from_secs(5), || lint(&schema)), []);
    let compiled = within(Duration::from_secs(5), || Schema::compile(&schema)).expect("it compiles");
    let mut arguments = json!({});
    assert_eq!(soon(|| compiled.admit(&mut arguments)).expect("it is accepted").len(), 10_000);
    let wrong: Map<String, Value> = (0..10_000).map(|index| (format!("q{index}"), json!(1))).collect();
    let violations = within(Duration::from_secs(5), || compiled.violations(&Value::Object(wrong)));
    assert_eq!(violations.len(), 1_000);
}

#[test]
fn a_schema_that_is_wrong_all_over_is_told_so_in_time() {
    let properties: Map<String, Value> =
        (0..3_000).map(|index| (format!("p{index}"), json!({"tipe": "string"}))).collect();
    let required: Vec<String> = (0..3_000).map(|index| format!("q{index}")).collect();
    let schema = json!({"type": "object", "properties": properties, "required": required});
    assert_eq!(within(Duration::from_secs(5), || lint(&schema)).len(), 6_000);
}

fn rules(issues: &[LintIssue]) -> Vec<Rule> {
    issues.iter().map(|issue| issue.rule).collect()
}

fn nested(mut value: Value, name: &str, levels: usize) -> Value {
    for _ in 0..levels {
        value = Value::Object(Map::from_iter([(name.to_owned(), value)]));
    }
    value
}

/// Dropping a deep value recurses once per level, which would end the test and not the code under test.
fn unnest(mut value: Value) {
    while let Value::Object(mut members) = value {
        value = members.iter_mut().next().map(|(_, inner)| inner.take()).unwrap_or_default();
    }
}

fn soon<T>(work: impl FnOnce() -> T) -> T {
    within(Duration::from_secs(2), work)
}

/// The limits are generous: tests run unoptimised, on machines that do other things too.
fn within<T>(limit: Duration, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    assert!(start.elapsed() < limit, "took {:?}", start.elapsed());
    result
}
