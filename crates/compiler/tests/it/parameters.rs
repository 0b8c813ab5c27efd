use expect_test::expect;
use serde_json::{Value, json};

use crate::world::{check, patched};

fn properties(properties: Value) -> quarterdeck_testkit::Tree {
    patched(json!({ "parameters": { "properties": properties } }))
}

#[test]
fn parameters_are_a_closed_object() {
    check(
        &patched(json!({ "parameters": { "type": "array", "additionalProperties": null } })),
        expect![[r#"
        error QD0304 greet/guide.md:8:1 `{ "name": "Fridtjof" }`
          the tool would refuse this example: the arguments must be an array (got an object of 1 member)
          help: correct the example or the schema; put “Response:” above a block that shows an answer
        error QD0202 greet/schema.json:14:3 `"parameters"`
          `parameters` admits arguments that are not declared
          help: add `"additionalProperties": false` beside `"properties"`
        error QD0201 greet/schema.json:15:13 `"array"`
          `parameters` is not of type object
          help: arguments come as an object: add `"type": "object"`
        error QD0209 greet/schema.json:16:5 `"properties"`
          `properties` is for values of type "object", which this schema does not admit
          help: remove `properties`, or change `type`
        error QD0209 greet/schema.json:22:5 `"required"`
          `required` is for values of type "object", which this schema does not admit
          help: remove `required`, or change `type`
    "#]],
    );
    check(
        &patched(json!({ "parameters": { "additionalProperties": true } })),
        expect![[r#"
        error QD0202 greet/schema.json:16:29 `true`
          `parameters` admits arguments that are not declared
          help: add `"additionalProperties": false` beside `"properties"`
    "#]],
    );
    check(
        &patched(json!({ "parameters": [] })),
        expect![[r#"
        error QD0201 greet/schema.json:14:3 `"parameters"`
          `parameters` is not a schema of an object
          help: write `{ "type": "object", "additionalProperties": false, "properties": {} }`
    "#]],
    );
}

#[test]
fn a_slip_in_a_keyword_or_format_is_found() {
    check(
        &properties(json!({
            "name": { "type": "string", "description": "d", "minLenght": 2 },
            "day": { "type": "string", "description": "d", "format": "datetime" },
        })),
        expect![[r#"
            error QD0203 greet/schema.json:24:9 `"minLenght"`
              unknown keyword `minLenght`
              help: did you mean `minLength`?
            error QD0204 greet/schema.json:29:19 `"datetime"`
              unknown format "datetime"
              help: did you mean "date-time"?
        "#]],
    );
}

#[test]
fn what_is_required_is_declared() {
    check(
        &patched(json!({ "parameters": { "required": ["name", "nickname"] } })),
        expect![[r#"
        error QD0304 greet/guide.md:8:1 `{ "name": "Fridtjof" }`
          the tool would refuse this example: nickname is required
          help: correct the example or the schema; put “Response:” above a block that shows an answer
        error QD0205 greet/schema.json:19:7 `"nickname"`
          required property "nickname" is not declared in `properties`
          help: declare it in the `properties` beside this `required`, or remove it from the list
    "#]],
    );
}

#[test]
fn references_stay_inside_the_document() {
    check(
        &properties(json!({
            "a": { "$ref": "#/$defs/gone" },
            "b": { "$ref": "https://example.com/schema.json" },
        })),
        expect![[r##"
            error QD0206 greet/schema.json:26:17 `"#/$defs/gone"`
              "#/$defs/gone" leads to no schema
              help: refer to a schema of this document, as in "#/$defs/name"
            error QD0206 greet/schema.json:29:17 `"https://example.com/schema.json"`
              "https://example.com/schema.json" leaves the document
              help: copy the schema into `$defs` and refer to it there
        "##]],
    );
}

#[test]
fn patterns_are_ecmascript() {
    check(
        &properties(json!({ "name": { "type": "string", "description": "d", "pattern": "(?i)fram" } })),
        expect![[r#"
            error QD0208 greet/schema.json:24:20 `"(?i)fram"`
              the pattern is not an ECMAScript regular expression: Invalid group modifier
              help: patterns follow JavaScript with the `u` flag: no inline flags such as (?i), no \A or \Z, and no escapes of characters that need none
        "#]],
    );
}

#[test]
fn keywords_have_their_types() {
    check(
        &properties(json!({ "n": { "minimum": 1, "description": "d" } })),
        expect![[r#"
        error QD0209 greet/schema.json:26:20 `1`
          `minimum` needs `type` "number" beside it
          help: add "type": "number"
    "#]],
    );
}

#[test]
fn keywords_without_effect_are_refused() {
    check(
        &properties(json!({
            "a": { "description": "d", "anyOf": [{ "type": "object", "properties": { "b": { "type": "string", "default": "x" } } }] },
            "c": { "type": "string", "description": "d", "then": { "minLength": 1 } },
        })),
        expect![[r#"
            warning QD0222 greet/schema.json:28:11 `{`
              this object admits properties that are not declared
              help: add `"additionalProperties": false`
            warning QD0223 greet/schema.json:31:15 `"b"`
              the parameter `b` has no description
              help: say in one sentence what it is for
            error QD0210 greet/schema.json:33:28 `"x"`
              the `default` of "b" is never filled in: it stands below a choice
              help: move the property with its default out of `anyOf`, `oneOf`, `not`, `if` or `contains`, or remove the default
            error QD0210 greet/schema.json:42:9 `"then"`
              `then` has no effect without `if`
              help: add `if`, or remove it
        "#]],
    );
}

#[test]
fn several_problems_in_one_schema_are_all_told() {
    check(
        &properties(json!({
            "name": { "type": "strng", "description": "d" },
            "n": { "type": "integer", "description": "d", "minimum": "one" },
            "l": { "type": "array", "description": "d", "items": [{ "type": "string" }] },
        })),
        expect![[r#"
            error QD0207 greet/schema.json:22:17 `"strng"`
              "strng" is not a type
              help: use string, number, integer, boolean, array, object or null
            error QD0207 greet/schema.json:28:20 `"one"`
              `minimum` cannot be "one"
              help: see draft 2020-12 for what `minimum` takes
            error QD0207 greet/schema.json:33:9 `"items"`
              a list of schemas in `items` is the way of an older draft
              help: rename this keyword to `prefixItems`
        "#]],
    );
}

#[test]
fn another_draft_is_only_a_warning() {
    check(
        &patched(json!({ "parameters": { "$schema": "http://json-schema.org/draft-07/schema#" } })),
        expect![[r#"
            warning QD0220 greet/schema.json:26:16 `"http://json-schema.org/draft-07/schema#"`
              `$schema` names http://json-schema.org/draft-07/schema#, but schemas are read as draft 2020-12
              help: remove `$schema`, or set it to "https://json-schema.org/draft/2020-12/schema"
        "#]],
    );
}

#[test]
fn what_a_model_would_stumble_over_is_a_warning() {
    check(
        &properties(json!({
            "unit": { "type": "string", "enum": ["words"], "default": "pages" },
            "who": { "type": "object", "description": "d", "properties": { "first": { "type": "string", "description": "d" } } },
        })),
        expect![[r#"
            error QD0304 greet/guide.md:8:1 `{ "name": "Fridtjof" }`
              the tool would refuse this example: unit must be one of "words" (got "pages")
              help: correct the example or the schema; put “Response:” above a block that shows an answer
            warning QD0223 greet/schema.json:25:7 `"unit"`
              the parameter `unit` has no description
              help: say in one sentence what it is for
            warning QD0221 greet/schema.json:30:20 `"pages"`
              the default of `unit` does not satisfy its own schema
              help: calls that leave the parameter out will fail: change the default or the schema
            warning QD0222 greet/schema.json:32:7 `"who"`
              this object admits properties that are not declared
              help: add `"additionalProperties": false`
        "#]],
    );
}

#[test]
fn deep_nesting_is_noticed_once() {
    let mut deep = json!({ "type": "string", "description": "d" });
    for _ in 0..8 {
        deep = json!({ "type": "object", "description": "d", "additionalProperties": false, "properties": { "a": deep } });
    }
    check(
        &properties(json!({ "deep": deep })),
        expect![[r#"
        warning QD0224 greet/schema.json:45:23 `"a"`
          the parameters nest more than five levels deep
          help: flatten them
    "#]],
    );
}

#[test]
fn the_schema_of_answers_is_held_to_the_same_rules() {
    check(
        &patched(json!({ "returns": { "type": "object", "propertys": {} } })),
        expect![[r#"
        error QD0203 greet/schema.json:29:5 `"propertys"`
          unknown keyword `propertys`
          help: did you mean `properties`?
    "#]],
    );
}
