//! Judging the arguments of a call.

use expect_test::{Expect, expect};
use quarterdeck_schema::Schema;
use serde_json::{Value, json};

#[test]
fn messages_tell_a_model_what_to_change() {
    check(
        search(),
        json!({"qury": "x", "top_k": 50, "filters": {"type": "ship", "tags": ["a", 3]}}),
        expect![[r#"
            [] required: query is required
            [] additionalProperties: unknown parameter "qury"; did you mean "query"?
            [/top_k] maximum: top_k must be ≤ 10 (got 50)
            [/filters/type] enum: filters.type must be one of "project", "person" (got "ship")
            [/filters/tags/1] type: filters.tags[1] must be a string (got 3)
        "#]],
    );
}

#[test]
fn an_unlike_name_is_still_traced_to_the_only_parameter_that_fits() {
    check(
        search(),
        json!({"query": "x", "limit": 5, "colour": "red"}),
        expect![[r#"
            [] additionalProperties: unknown parameter "limit"; did you mean "top_k"?
            [] additionalProperties: unknown parameter "colour"; known are "query", "top_k", "filters"
        "#]],
    );
}

#[test]
fn values_are_cut_short_and_nothing_is_coerced() {
    check(
        search(),
        json!({"query": 3, "top_k": "3", "filters": "x".repeat(500)}),
        expect![[r#"
            [/query] type: query must be a string (got 3)
            [/top_k] type: top_k must be an integer (got "3")
            [/filters] type: filters must be an object (got "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…)
        "#]],
    );
}

#[test]
fn every_keyword_has_its_sentence() {
    check(
        json!({
            "properties": {
                "a": {"minLength": 2}, "b": {"maxItems": 1, "uniqueItems": true}, "c": {"const": "x"}, "d": {"pattern": "^a"},
                "e": {"format": "date"}, "f": {"multipleOf": 5, "exclusiveMinimum": 7}, "g": false, "h": {"not": {"type": "string"}},
                "i": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "j": {"oneOf": [{"type": "integer"}, {"type": "number"}]},
                "k": {"contains": {"type": "string"}}, "l": {"prefixItems": [true], "items": false},
                "m": {"propertyNames": {"maxLength": 1}, "minProperties": 2}
            },
            "dependentRequired": {"a": ["z"]},
            "if": {"required": ["a"]}, "then": {"required": ["y"]}
        }),
        json!({
            "a": "x", "b": [1, 1], "c": "y", "d": "b", "e": "soon", "f": 7, "g": 1, "h": "x", "i": 3, "j": 3, "k": [1], "l": [1, 2],
            "m": {"long": 1}
        }),
        expect![[r#"
            [] required: y is required
            [] if: the arguments must fit the condition that its other values bring
            [/a] minLength: a must have at least 2 characters (got 1)
            [/b] maxItems: b must have at most 1 item (got 2)
            [/b] uniqueItems: b must not contain the same item twice
            [/c] const: c must be "x" (got "y")
            [/d] pattern: d must match the pattern ^a (got "b")
            [/e] format: e must be a valid date (got "soon")
            [/f] exclusiveMinimum: f must be > 7 (got 7)
            [/f] multipleOf: f must be a multiple of 5 (got 7)
            [/g] false schema: g is not allowed
            [/h] not: h must not be of this form (got "x")
            [/i] type: i must be a string (got 3)
            [/i] type: i must be null (got 3)
            [/i] anyOf: i matches none of the forms it may have
            [/j] oneOf: j matches more than one of the forms of which it may have one
            [/k/0] type: k[0] must be a string (got 1)
            [/k] contains: k must contain at least 1 of the wanted items
            [/l] items: l must have at most 1 item
            [/m] minProperties: m must have at least 2 members (got 1)
            [/m] maxLength: m must have at most 1 character (got 4)
            [/m] propertyNames: m must not have a member named "long"
            [] dependentRequired: z is required when a is given
        "#]],
    );
}

#[test]
fn unevaluated_members_and_items_are_told() {
    check(
        json!({
            "allOf": [{"properties": {"a": true, "list": {"prefixItems": [true], "unevaluatedItems": false}}}],
            "unevaluatedProperties": false
        }),
        json!({"a": 1, "b": 2, "list": [1, 2]}),
        expect![[r#"
            [/list] unevaluatedItems: list must have at most 1 item
            [] unevaluatedProperties: unknown parameter "b"; none are taken
        "#]],
    );
}

#[test]
fn defaults_fill_absent_properties_at_every_depth() {
    let schema = json!({
        "type": "object",
        "properties": {
            "size": {"type": "integer", "default": 3},
            "deep": {"type": "object", "default": {}, "properties": {"a": {"type": "string", "default": "x"}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"b": {"default": null}}}},
            "none": {"type": "object", "properties": {"c": {"default": 1}}}
        }
    });
    filled(
        &schema,
        json!({"list": [{}, {"b": 1}]}),
        json!({"list": [{"b": null}, {"b": 1}], "size": 3, "deep": {"a": "x"}}),
        &["/size", "/deep", "/deep/a", "/list/0/b"],
    );
    filled(&schema, json!({"size": 0, "deep": {"a": ""}}), json!({"size": 0, "deep": {"a": ""}}), &[]);
}

#[test]
fn defaults_follow_the_branch_that_is_taken() {
    let schema = json!({
        "type": "object",
        "if": {"properties": {"kind": {"const": "a"}}, "required": ["kind"]},
        "then": {"properties": {"x": {"default": 1}}},
        "else": {"properties": {"y": {"default": 2}}},
        "dependentSchemas": {"kind": {"properties": {"z": {"default": 3}}}},
        "additionalProperties": {"properties": {"w": {"default": 4}}},
        "patternProperties": {"^p": {"properties": {"v": {"default": 5}}}}
    });
    filled(&schema, json!({"kind": "a"}), json!({"kind": "a", "x": 1, "z": 3}), &["/x", "/z"]);
    filled(
        &schema,
        json!({"o": {}, "p": {}}),
        json!({"o": {"w": 4}, "p": {"v": 5}, "y": 2}),
        &["/y", "/o/w", "/p/v"],
    );
}

#[test]
fn defaults_below_a_choice_are_left_alone_unless_the_definition_is_recursive() {
    let choice = json!({"anyOf": [{"type": "object", "properties": {"a": {"default": 1}}}]});
    filled(&choice, json!({}), json!({}), &[]);
    let recursive = json!({
        "anyOf": [{"$ref": "#/$defs/tree"}],
        "$defs": {"tree": {"type": "object", "properties": {"size": {"default": 1}, "next": {"$ref": "#/$defs/tree"}}}}
    });
    filled(
        &recursive,
        json!({"next": {}}),
        json!({"next": {"size": 1}, "size": 1}),
        &["/size", "/next/size"],
    );
}

#[test]
fn a_default_beside_a_reference_counts_and_one_inside_its_target_does_not() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/n", "default": 7}, "b": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {"type": "integer", "default": 1}}
    });
    filled(&schema, json!({}), json!({"a": 7}), &["/a"]);
}

#[test]
fn a_bad_default_is_filled_and_then_refused() {
    let schema =
        Schema::compile(&json!({"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}))
            .expect("it compiles");
    let mut arguments = json!({});
    let violations = schema.admit(&mut arguments).expect_err("the default is no integer");
    assert_eq!((violations[0].path.as_str(), violations[0].keyword.as_str()), ("/a", "type"));
    assert_eq!(arguments, json!({"a": "x"}));
}

#[test]
fn nullable_admits_null() {
    let schema = Schema::compile(&json!({"type": "string", "nullable": true})).expect("it compiles");
    assert!(schema.accepts(&Value::Null) && schema.accepts(&json!("x")) && !schema.accepts(&json!(1)));
}

#[test]
fn decimals_are_exact() {
    let schema = Schema::compile(&json!({"type": "number", "multipleOf": 0.01})).expect("it compiles");
    assert!(schema.accepts(&json!(0.07)) && !schema.accepts(&json!(0.075)));
}

#[test]
fn names_of_javascript_prototypes_are_names_like_any_other() {
    let schema = Schema::compile(&json!({
        "type": "object",
        "properties": {"constructor": {"type": "string", "default": "x"}, "__proto__": {"type": "integer"}},
        "required": ["toString"],
        "additionalProperties": false
    }))
    .expect("it compiles");
    let mut arguments = json!({"__proto__": 1});
    let violations = schema.admit(&mut arguments).expect_err("toString is missing");
    assert_eq!(
        violations.iter().map(|violation| violation.message.as_str()).collect::<Vec<_>>(),
        ["toString is required"]
    );
    assert_eq!(arguments, json!({"__proto__": 1, "constructor": "x"}));
}

#[test]
fn paths_escape_only_what_json_pointers_escape() {
    let schema = Schema::compile(&json!({"type": "object", "additionalProperties": {"type": "integer"}}))
        .expect("it compiles");
    let violations = schema.violations(&json!({"a/b~ %é": "x"}));
    assert_eq!(violations[0].path, "/a~1b~0 %é");
}

fn search() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1},
            "top_k": {"type": "integer", "minimum": 1, "maximum": 10},
            "filters": {
                "type": "object",
                "properties": {
                    "type": {"type": "string", "enum": ["project", "person"]},
                    "tags": {"type": "array", "items": {"type": "string"}}
                },
                "additionalProperties": false
            }
        },
        "required": ["query"],
        "additionalProperties": false
    })
}

fn check(schema: Value, mut arguments: Value, expected: Expect) {
    let schema = Schema::compile(&schema).expect("it compiles");
    let violations = schema.admit(&mut arguments).expect_err("it is refused");
    let told = violations
        .iter()
        .map(|violation| format!("[{}] {}: {}\n", violation.path, violation.keyword, violation.message));
    expected.assert_eq(&told.collect::<String>());
}

fn filled(schema: &Value, mut value: Value, expected: Value, pointers: &[&str]) {
    let schema = Schema::compile(schema).expect("it compiles");
    let filled = schema.fill_defaults(&mut value);
    assert_eq!((value, filled), (expected, pointers.iter().map(|pointer| (*pointer).to_owned()).collect()));
}
