//! What is refused, and next to it the nearest thing that is not.

use expect_test::{Expect, expect};
use quarterdeck_schema::{Rule, Severity, lint};
use serde_json::{Value, json};

#[test]
fn unknown_keywords_are_refused() {
    refused(
        Rule::UnknownKeyword,
        [
            json!({"type": "string", "minLenght": 1}),
            json!({"type": "string", "x-note": 1}),
            json!({"type": "string", "example": "a"}),
            json!({"type": "array", "additionalItems": true}),
            json!({"type": "object", "properties": {"a": {"note": 1}}}),
            json!({"anyOf": [{"note": 1}, {"type": "string"}]}),
            json!({"type": "string", "toString": 1}),
            json!({"$anchor": "a", "type": "string"}),
        ],
    );
    accepted([
        json!({"type": "object", "properties": {"note": {"type": "string"}, "toString": {"type": "string"}}}),
        json!({"type": "string", "title": "T", "examples": ["a"], "deprecated": true, "$comment": "c", "readOnly": true}),
        json!({"definitions": {"unused": {"note": 1}}}),
        json!({"type": "string", "contentSchema": {"note": 1}}),
        json!({"if": {"note": 1}, "then": true, "else": {}}),
    ]);
}

#[test]
fn unknown_formats_are_refused() {
    refused(
        Rule::UnknownFormat,
        [json!({"type": "string", "format": "datetime"}), json!({"type": "string", "format": "idn-email"})],
    );
    accepted([
        json!({"type": "string", "format": "date-time"}),
        json!({"type": "integer", "format": "int64"}),
    ]);
}

#[test]
fn a_value_has_one_type_or_null() {
    refused(
        Rule::UnionTypes,
        [
            json!({"type": ["string", "number"]}),
            json!({"type": ["string", "number", "null"]}),
            json!({"type": ["number", "integer"]}),
            json!({"type": ["string", "number"], "nullable": true}),
        ],
    );
    accepted([
        json!({"type": ["string", "null"]}),
        json!({"type": ["string"]}),
        json!({"type": "string", "nullable": true}),
    ]);
}

#[test]
fn keywords_stand_beside_the_type_they_are_for() {
    refused(
        Rule::MissingType,
        [
            json!({"minLength": 1}),
            json!({"properties": {"a": {"type": "string"}}}),
            json!({"type": "string", "minimum": 1}),
            json!({"type": "object", "properties": {"a": {"items": {"type": "string"}}}}),
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"minLength": 1}}}),
        ],
    );
    accepted([
        json!({"enum": ["a", 1]}),
        json!({"type": "integer", "minimum": 1}),
        json!({"type": ["integer", "null"], "minimum": 1}),
        json!({"type": "object", "anyOf": [{"minProperties": 1}, {"maxProperties": 3}]}),
        json!({"type": "object", "propertyNames": {"pattern": "^a"}}),
        json!({"type": "number", "not": {"multipleOf": 2}}),
    ]);
}

#[test]
fn an_inner_type_agrees_with_the_one_around_it() {
    refused(
        Rule::TypeOutsideContext,
        [
            json!({"type": "object", "anyOf": [{"type": "string"}]}),
            json!({"type": "integer", "allOf": [{"type": "number"}]}),
            json!({"type": "object", "propertyNames": {"type": "integer"}}),
        ],
    );
    accepted([
        json!({"type": "number", "anyOf": [{"type": "integer"}]}),
        json!({"type": ["string", "null"], "anyOf": [{"type": "null"}, {"type": "string", "minLength": 1}]}),
        json!({"type": "object", "anyOf": [{"$ref": "#/$defs/text"}], "$defs": {"text": {"type": "string"}}}),
    ]);
}

#[test]
fn nullable_needs_a_type() {
    refused(
        Rule::Nullable,
        [
            json!({"nullable": true}),
            json!({"type": "string", "nullable": "yes"}),
            json!({"type": ["string", "null"], "nullable": false}),
        ],
    );
    accepted([json!({"type": "string", "nullable": false})]);
}

#[test]
fn required_names_are_declared_in_the_same_schema() {
    refused(
        Rule::RequiredNotDeclared,
        [
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"required": ["a"]}]}),
            json!({"type": "object", "required": ["toString"]}),
            json!({"type": "object", "allOf": [{"required": ["a"]}, {"properties": {"a": {"type": "string"}}}]}),
        ],
    );
    accepted([
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
        json!({"type": "object", "properties": {"a": true}, "anyOf": [{"properties": {"a": true}, "required": ["a"]}]}),
        json!({"type": "object", "required": []}),
        json!({"type": "object", "allOf": [{"properties": {"a": true}}, {"required": ["a"]}]}),
    ]);
}

#[test]
fn tuples_say_how_long_they_are() {
    refused(
        Rule::OpenTuple,
        [
            json!({"type": "array", "prefixItems": [{"type": "string"}]}),
            json!({"type": "array", "prefixItems": [{"type": "string"}], "minItems": 1}),
            json!({"type": "array", "prefixItems": [{"type": "string"}], "minItems": 1, "maxItems": 2}),
        ],
    );
    accepted([
        json!({"type": "array", "prefixItems": [{"type": "string"}], "minItems": 1, "maxItems": 1}),
        json!({"type": "array", "prefixItems": [{"type": "string"}], "minItems": 1, "items": false}),
    ]);
}

#[test]
fn defaults_stand_where_they_are_filled() {
    let inner = json!({"type": "object", "properties": {"a": {"type": "integer", "default": 1}}});
    refused(
        Rule::IgnoredDefault,
        [
            json!({"type": "object", "default": {}}),
            json!({"anyOf": [inner, {"type": "string"}]}),
            json!({"oneOf": [inner]}),
            json!({"not": inner}),
            json!({"type": "array", "contains": inner}),
            json!({"if": inner, "then": {"type": "object"}}),
            json!({"anyOf": [{"$ref": "#/$defs/inner"}], "$defs": {"inner": inner}}),
        ],
    );
    accepted([
        inner.clone(),
        json!({"default": 1}),
        json!({"type": "object", "allOf": [inner]}),
        json!({"type": "array", "items": inner}),
        json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "string", "default": "x"}]}}}),
        json!({"if": inner, "then": true}),
        json!({
            "type": "object",
            "properties": {"a": {"anyOf": [{"$ref": "#/$defs/tree"}]}},
            "$defs": {"tree": {"type": "object", "properties": {"size": {"type": "integer", "default": 1}, "next": {"$ref": "#/$defs/tree"}}}}
        }),
    ]);
}

#[test]
fn declared_names_and_patterns_do_not_overlap() {
    let with = |pattern: &str| json!({"type": "object", "properties": {"ab": {"type": "string"}}, "patternProperties": {pattern: {"type": "string"}}});
    refused(Rule::PropertyMatchesPattern, [with("^a")]);
    accepted([with("^b")]);
}

#[test]
fn keywords_that_do_nothing_are_refused() {
    refused(
        Rule::IgnoredKeyword,
        [
            json!({"if": {"type": "string"}}),
            json!({"then": {"type": "string"}}),
            json!({"else": {"type": "string"}}),
            json!({"type": "array", "minContains": 1}),
            json!({"type": "array", "contains": {"type": "string"}, "minContains": 0}),
            json!({"type": "array", "contains": {"type": "string"}, "minContains": 3, "maxContains": 2}),
        ],
    );
    accepted([
        json!({"if": {"type": "string"}, "else": {"type": "number"}}),
        json!({"type": "array", "contains": {"type": "string"}, "minContains": 0, "maxContains": 2}),
    ]);
}

#[test]
fn the_meta_schema_is_obeyed_even_in_unused_definitions() {
    refused(
        Rule::MetaSchema,
        [
            json!([]),
            json!("object"),
            json!({"type": "text"}),
            json!({"type": []}),
            json!({"type": "object", "required": ["a", "a"]}),
            json!({"type": "object", "properties": {"a": {"type": "string", "required": true}}}),
            json!({"type": "array", "items": [{"type": "string"}]}),
            json!({"type": "string", "minLength": -1}),
            json!({"anyOf": []}),
            json!({"$defs": {"unused": {"minLength": "1"}}}),
            json!({"title": 1}),
            json!({"$id": "#here", "type": "string"}),
        ],
    );
    refused(Rule::EmptyEnum, [json!({"enum": []})]);
    accepted([
        json!(true),
        json!(false),
        json!({}),
        json!({"type": "string", "minLength": 1.0}),
        json!({"enum": ["a", "a"]}),
    ]);
}

#[test]
fn patterns_are_of_ecmascript() {
    refused(
        Rule::BadPattern,
        [
            json!({"type": "string", "pattern": "("}),
            json!({"type": "string", "pattern": "\\_"}),
            json!({"type": "string", "pattern": "(?i)a"}),
            json!({"type": "object", "patternProperties": {"\\Z": {"type": "string"}}}),
        ],
    );
    accepted([
        json!({"type": "string", "pattern": "^[\\w\\-]+(?=\\d)$"}),
        json!({"$defs": {"unused": {"type": "string", "pattern": "\\_"}}}),
    ]);
}

#[test]
fn references_lead_to_schemas_of_the_document() {
    let to = |target: &str| json!({"type": "object", "properties": {"a": {"$ref": target}}, "$defs": {"b": {"type": "string"}}});
    refused(
        Rule::UnresolvedReference,
        [to("#/$defs/c"), to("#c"), to("#/$defs/b/type"), json!({"$dynamicRef": "#c"})],
    );
    refused(Rule::ForeignReference, [to("other.json"), to("https://json-schema.org/draft/2020-12/schema")]);
    refused(
        Rule::EndlessReference,
        [
            json!({"$ref": "#"}),
            json!({"anyOf": [{"$ref": "#"}]}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        ],
    );
    refused(Rule::AmbiguousReference, [json!({"$defs": {"a": {"$id": "x"}, "b": {"$id": "x"}}})]);
    accepted([
        to("#/$defs/b"),
        to("#"),
        json!({"type": "object", "properties": {"a": {"$ref": "x"}}, "$defs": {"a": {"$id": "x", "type": "string"}}}),
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a~1b%20c"}}, "$defs": {"a/b c": {"type": "string"}}}),
        json!({"type": "object", "properties": {"a": {"$dynamicRef": "#n"}}, "$defs": {"a": {"$dynamicAnchor": "n", "type": "string"}}}),
    ]);
}

#[test]
fn another_draft_is_only_a_warning() {
    let issues = lint(&json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}));
    assert_eq!(
        issues.iter().map(|issue| (issue.rule, issue.severity())).collect::<Vec<_>>(),
        [(Rule::OtherDraft, Severity::Warning)]
    );
    assert_eq!(lint(&json!({"$schema": "https://json-schema.org/draft/2020-12/schema#"})), []);
}

#[test]
fn all_faults_are_told_at_once_with_a_way_out() {
    check(
        json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLenght": 1, "format": "emial"},
                "size": {"type": ["integer", "string"]},
                "tags": {"items": {"type": "strnig"}}
            },
            "required": ["nmae", "colour"]
        }),
        expect![[r#"
            /properties/name/format: unknown format "emial"
              help: did you mean "email"?
            /properties/name/minLenght: unknown keyword `minLenght`
              help: did you mean `minLength`?
            /properties/size/type: one value cannot be of several types (integer, string)
              help: use `anyOf` with one schema per type; only a pair with "null" may stand in a list
            /properties/tags/items: `items` needs `type` "array" beside it
              help: add "type": "array"
            /properties/tags/items/type: "strnig" is not a type
              help: use string, number, integer, boolean, array, object or null
            /required/0: required property "nmae" is not declared in `properties`
              help: did you mean "name"?
            /required/1: required property "colour" is not declared in `properties`
              help: declare it in the `properties` beside this `required`, or remove it from the list
        "#]],
    );
}

fn check(schema: Value, expected: Expect) {
    let told: String =
        lint(&schema).iter().map(|issue| format!("{issue}\n  help: {}\n", issue.help)).collect();
    expected.assert_eq(&told);
}

fn refused(rule: Rule, schemas: impl IntoIterator<Item = Value>) {
    for schema in schemas {
        let issues = lint(&schema);
        assert!(issues.iter().any(|issue| issue.rule == rule), "{schema} should break {rule:?}: {issues:?}");
    }
}

fn accepted(schemas: impl IntoIterator<Item = Value>) {
    for schema in schemas {
        assert_eq!(lint(&schema), [], "{schema}");
    }
}
