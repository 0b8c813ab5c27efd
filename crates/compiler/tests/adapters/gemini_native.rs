//! Gemini's dialect, rule by rule, on schemas of a single parameter.

use quarterdeck_compiler::adapters::gemini_native::{GeminiParameters, convert};
use serde_json::{Value, json};

/// What a parameter `p` with this schema becomes, and what is noted.
pub(crate) fn check(schema: Value, expected: Value, notes: &[&str]) {
    check_root(
        json!({ "type": "object", "properties": { "p": schema } }),
        json!({ "type": "OBJECT", "properties": { "p": expected } }),
        notes,
    );
}

pub(crate) fn check_root(parameters: Value, expected: Value, notes: &[&str]) {
    let converted = converted(&parameters);
    assert_eq!(converted.parameters, Some(expected), "{parameters}");
    assert_eq!(converted.notes.keys().copied().collect::<Vec<_>>(), notes, "{parameters}");
}

pub(crate) fn converted(parameters: &Value) -> GeminiParameters {
    convert(parameters).unwrap()
}

#[test]
fn annotations_go_without_a_note() {
    check(
        json!({ "type": "string", "title": "T", "default": "a", "examples": ["b"], "$comment": "c", "deprecated": true,
                "readOnly": true, "contentMediaType": "text/plain", "description": "D." }),
        json!({ "type": "STRING", "description": "D." }),
        &[],
    );
}

#[test]
fn keywords_that_the_dialect_lacks_are_noted_by_name() {
    for (keyword, value) in [
        ("patternProperties", json!({ "^x": {} })),
        ("propertyNames", json!({ "maxLength": 3 })),
        ("dependentRequired", json!({ "a": ["b"] })),
        ("dependentSchemas", json!({ "a": {} })),
        ("dependencies", json!({ "a": ["b"] })),
        ("unevaluatedProperties", json!(false)),
        ("not", json!({ "required": ["a"] })),
        ("if", json!({ "required": ["a"] })),
    ] {
        let mut schema = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        schema[keyword] = value;
        check(schema, json!({ "type": "OBJECT", "properties": { "a": { "type": "STRING" } } }), &[keyword]);
    }
    check(
        json!({ "type": "array", "items": { "type": "string" }, "uniqueItems": true, "contains": {}, "minContains": 2,
                "maxContains": 3, "unevaluatedItems": false }),
        json!({ "type": "ARRAY", "items": { "type": "STRING" } }),
        &["contains", "maxContains", "minContains", "unevaluatedItems", "uniqueItems"],
    );
    check(json!({ "type": "number", "multipleOf": 0.5 }), json!({ "type": "NUMBER" }), &["multipleOf"]);
    check(
        json!({ "type": "string", "if": { "minLength": 2 }, "then": { "maxLength": 4 }, "else": { "const": "" } }),
        json!({ "type": "STRING" }),
        &["else", "if", "then"],
    );
}

#[test]
fn a_map_is_told_in_the_description() {
    check(
        json!({ "type": "object", "additionalProperties": { "type": "number" }, "description": "Prices." }),
        json!({ "type": "OBJECT", "description": "Prices. Free-form map of string keys." }),
        &["additionalProperties"],
    );
    check(
        json!({ "type": "object", "additionalProperties": {} }),
        json!({ "type": "OBJECT" }),
        &["additionalProperties"],
    );
    for open in [true, false] {
        check(json!({ "type": "object", "additionalProperties": open }), json!({ "type": "OBJECT" }), &[]);
    }
}

#[test]
fn a_type_is_inferred_from_what_is_said() {
    check(
        json!({ "enum": [1, 2.5] }),
        json!({ "type": "NUMBER", "description": "Allowed values: 1, 2.5." }),
        &["non-string enum"],
    );
    check(json!({ "required": ["a"] }), json!({ "type": "OBJECT" }), &[]);
    check(
        json!({ "additionalProperties": { "type": "string" } }),
        json!({ "type": "OBJECT", "description": "Free-form map of string keys." }),
        &["additionalProperties"],
    );
    check(
        json!({ "format": "date" }),
        json!({ "type": "STRING", "description": "Format: date." }),
        &["format"],
    );
    check(json!({ "exclusiveMaximum": 3 }), json!({ "type": "NUMBER", "maximum": 3 }), &["exclusiveMaximum"]);
    check(json!({ "const": null }), json!({ "type": "STRING", "nullable": true }), &[]);
    check(json!({ "title": "T" }), json!({ "type": "STRING" }), &["untyped schema"]);
}

#[test]
fn listed_values_are_kept_only_when_all_are_text() {
    check(
        json!({ "type": "string", "enum": ["a", "b", "a"] }),
        json!({ "type": "STRING", "enum": ["a", "b"] }),
        &[],
    );
    check(
        json!({ "type": "string", "enum": ["", "a"], "description": "Sort." }),
        json!({ "type": "STRING", "description": "Sort. Allowed values: \"\", \"a\"." }),
        &["non-string enum"],
    );
    check(
        json!({ "type": "boolean", "const": true }),
        json!({ "type": "BOOLEAN", "description": "Allowed values: true." }),
        &["non-string enum"],
    );
    check(
        json!({ "type": ["integer", "null"], "enum": [1, null] }),
        json!({ "type": "INTEGER", "nullable": true, "description": "Allowed values: 1." }),
        &["non-string enum"],
    );
    check(
        json!({ "type": "string", "enum": ["a", null] }),
        json!({ "type": "STRING", "nullable": true, "enum": ["a"] }),
        &[],
    );
}

#[test]
fn hints_follow_the_description_in_order() {
    check(
        json!({ "type": "string", "format": "email", "enum": ["a@b.de", ""], "description": "Who." }),
        json!({ "type": "STRING", "description": "Who. Allowed values: \"a@b.de\", \"\". Format: email." }),
        &["format", "non-string enum"],
    );
}

#[test]
fn formats_are_kept_where_the_dialect_has_them() {
    for (kind, format) in
        [("number", "float"), ("number", "double"), ("integer", "int32"), ("integer", "int64")]
    {
        check(
            json!({ "type": kind, "format": format }),
            json!({ "type": kind.to_uppercase(), "format": format }),
            &[],
        );
    }
    check(
        json!({ "type": "integer", "format": "float" }),
        json!({ "type": "INTEGER", "description": "Format: float." }),
        &["format"],
    );
    check(
        json!({ "type": "string", "format": "date-time", "enum": ["2026-01-01T00:00:00Z"] }),
        json!({ "type": "STRING", "description": "Format: date-time.", "enum": ["2026-01-01T00:00:00Z"] }),
        &["format"],
    );
}

#[test]
fn exclusive_bounds_move_into_the_others() {
    check(
        json!({ "type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10 }),
        json!({ "type": "INTEGER", "minimum": 1, "maximum": 9 }),
        &[],
    );
    check(
        json!({ "type": "integer", "exclusiveMinimum": 0.5, "exclusiveMaximum": 9.5 }),
        json!({ "type": "INTEGER", "minimum": 1, "maximum": 9 }),
        &[],
    );
    check(
        json!({ "type": "integer", "exclusiveMinimum": 3, "minimum": 9, "exclusiveMaximum": 20, "maximum": 15 }),
        json!({ "type": "INTEGER", "minimum": 9, "maximum": 15 }),
        &[],
    );
    check(
        json!({ "type": "number", "exclusiveMaximum": 1, "maximum": 2 }),
        json!({ "type": "NUMBER", "maximum": 1 }),
        &["exclusiveMaximum"],
    );
}

#[test]
fn arrays_always_say_what_their_items_are() {
    check(
        json!({ "type": "array", "items": false, "minItems": 1 }),
        json!({ "type": "ARRAY", "items": { "type": "STRING" }, "minItems": 1 }),
        &["array without items"],
    );
    check(
        json!({ "type": "array", "prefixItems": [{ "type": "number" }, { "type": "number" }] }),
        json!({ "type": "ARRAY", "items": { "type": "NUMBER" } }),
        &["prefixItems"],
    );
    check(
        json!({ "type": "array", "prefixItems": [{ "const": "a" }], "items": { "type": "integer" } }),
        json!({ "type": "ARRAY", "items": { "anyOf": [{ "type": "STRING", "enum": ["a"] }, { "type": "INTEGER" }] } }),
        &["prefixItems"],
    );
}

#[test]
fn only_declared_names_are_required() {
    check(
        json!({ "type": "object", "properties": { "a": { "type": "null" } }, "required": ["a", "b", "a"] }),
        json!({ "type": "OBJECT", "properties": { "a": { "type": "STRING", "nullable": true } }, "required": ["a"] }),
        &[],
    );
}

#[test]
fn all_of_is_merged_and_the_outer_keywords_win() {
    check(
        json!({
            "description": "Outer.",
            "properties": { "a": { "type": "integer" } },
            "allOf": [
                { "type": "object", "description": "Inner.", "properties": { "a": { "type": "string" }, "b": { "type": "boolean" } }, "required": ["b"] },
                { "minProperties": 1, "required": ["a", "b"] },
            ],
        }),
        json!({
            "type": "OBJECT",
            "description": "Outer.",
            "properties": { "a": { "type": "INTEGER" }, "b": { "type": "BOOLEAN" } },
            "required": ["b", "a"],
            "minProperties": 1,
        }),
        &["allOf merged"],
    );
}

#[test]
fn parameters_without_properties_are_left_out() {
    for parameters in
        [json!({ "type": "object" }), json!({ "type": "object", "properties": {}, "description": "D." })]
    {
        assert_eq!(converted(&parameters).parameters, None);
    }
}

#[test]
fn a_reference_is_inlined_and_its_siblings_win() {
    let address =
        json!({ "type": "object", "description": "A place.", "properties": { "x": { "type": "number" } } });
    check_root(
        json!({
            "type": "object",
            "properties": { "from": { "$ref": "#/$defs/place" }, "to": { "$ref": "#/$defs/place", "description": "Goal." } },
            "$defs": { "place": address },
        }),
        json!({
            "type": "OBJECT",
            "properties": {
                "from": { "type": "OBJECT", "description": "A place.", "properties": { "x": { "type": "NUMBER" } } },
                "to": { "type": "OBJECT", "description": "Goal.", "properties": { "x": { "type": "NUMBER" } } },
            },
        }),
        &[],
    );
}

#[test]
fn recursion_ends_in_a_plain_object() {
    check_root(
        json!({
            "type": "object",
            "properties": { "root": { "$ref": "#/$defs/a" } },
            "$defs": {
                "a": { "type": "object", "properties": { "b": { "$ref": "#/$defs/b" } } },
                "b": { "type": "object", "properties": { "a": { "$ref": "#/$defs/a", "description": "Back." } } },
            },
        }),
        json!({
            "type": "OBJECT",
            "properties": { "root": { "type": "OBJECT", "properties": { "b": {
                "type": "OBJECT", "properties": { "a": { "type": "OBJECT", "description": "Back." } },
            } } } },
        }),
        &["recursive $ref"],
    );
}

#[test]
fn a_loss_in_a_definition_is_placed_where_it_is_written() {
    let converted = converted(&json!({
        "type": "object",
        "properties": { "a": { "$ref": "#/$defs/mail" }, "b": { "$ref": "#/$defs/mail" } },
        "$defs": { "mail": { "type": "string", "format": "email" } },
    }));
    assert_eq!(converted.notes["format"], ["/$defs/mail/format"]);
}

#[test]
fn names_that_the_provider_refuses_are_refused_at_any_depth() {
    let long = "x".repeat(65);
    let converted = converted(&json!({
        "type": "object",
        "properties": {
            "fine_1": { "type": "array", "items": { "type": "object", "properties": { "a-b": { "type": "string" } } } },
            "1st": { "type": "string" },
            "größe": { "type": "string" },
            long: { "type": "string" },
        },
    }));
    let places: Vec<_> =
        converted.refusals.iter().map(|refusal| refusal.at.chars().take(46).collect::<String>()).collect();
    assert_eq!(places[0], "/properties/fine_1/items/properties/a-b");
    assert_eq!(places[1..3], ["/properties/1st", "/properties/größe"]);
    assert_eq!(places.len(), 4);
}

#[test]
fn what_cannot_be_resolved_is_refused_with_its_place() {
    for (reference, at) in
        [("https://example.com/a.json", "/properties/p"), ("#/$defs/none", "/properties/p")]
    {
        let parameters = json!({ "type": "object", "properties": { "p": { "$ref": reference } } });
        let refusal = convert(&parameters).unwrap_err();
        assert_eq!(refusal.at, at);
        assert_eq!(refusal.reason, format!("`{reference}` names nothing inside the parameters"));
    }
}
