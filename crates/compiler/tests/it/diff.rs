use std::fmt::Write;

use expect_test::{Expect, expect};
use quarterdeck_compiler::diff;
use quarterdeck_testkit::{Tree, tree};
use serde_json::json;

use crate::world::{SOUND, artifact, patched, sound};

/// Without examples, so that it fits every contract.
const GUIDE: &str = "# Greet\n\nGreets someone by name.\n";

fn check(old: &Tree, new: &Tree, expected: Expect) {
    let difference = diff(&artifact(old), &artifact(new));
    let mut told = String::new();
    for change in &difference.changes {
        writeln!(told, "{} {} {}", change.tool, change.effect.as_str(), change.what).unwrap();
        if let Some(example) = &change.example {
            writeln!(told, "  {example}").unwrap();
        }
    }
    writeln!(told, "breaking: {}", difference.is_breaking()).unwrap();
    expected.assert_eq(&told);
}

#[test]
fn the_same_artifact_has_no_difference() {
    check(
        &sound(),
        &sound(),
        expect![[r#"
        breaking: false
    "#]],
    );
}

#[test]
fn new_tool_breaks_no_caller_and_a_removed_one_does() {
    let more = tree(&format!(
        "{SOUND}{}",
        SOUND.replace("greet", "apologise").replace("Greets someone", "Says sorry")
    ));
    check(
        &sound(),
        &more,
        expect![[r#"
        apologise adds the tool is new
        breaking: false
    "#]],
    );
    check(
        &more,
        &sound(),
        expect![[r#"
        apologise breaks the tool is gone
        breaking: true
    "#]],
    );
}

#[test]
fn a_new_required_parameter_breaks_unless_it_has_a_default() {
    let required = |extra: serde_json::Value| {
        let mut property = json!({ "type": "string", "description": "d" });
        property.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let files = patched(
            json!({ "parameters": { "required": ["name", "tone"], "properties": { "tone": property } } }),
        );
        files.write("greet/guide.md", GUIDE);
        files
    };
    let sound = sound();
    sound.write("greet/guide.md", GUIDE);
    check(
        &sound,
        &required(json!({})),
        expect![[r#"
        greet breaks tone: is new and required
          {"name":"x"}
        greet changes the version goes from 1.0.0 to 1.0.0; a breaking change wants a new major version
        breaking: true
    "#]],
    );
    check(
        &sound,
        &required(json!({ "default": "kind" })),
        expect![[r#"
            greet changes tone: is new and required
            breaking: false
        "#]],
    );
}

#[test]
fn narrowing_breaks_and_widening_does_not() {
    let narrow = patched(json!({ "parameters": { "properties": {
        "name": { "minLength": 2, "maxLength": 10, "pattern": "^[A-Z]" },
        "tone": { "type": "string", "description": "d", "enum": ["kind"] },
        "times": { "type": "integer", "description": "d", "maximum": 3 },
    } } }));
    let wide = patched(json!({ "parameters": { "properties": {
        "name": {},
        "tone": { "type": "string", "description": "d", "enum": ["kind", "formal"] },
        "times": { "type": "number", "description": "d", "maximum": 5 },
    } } }));
    check(
        &wide,
        &narrow,
        expect![[r#"
            greet breaks name: `minLength` is now 2
              {"name":"x"}
            greet breaks name: `maxLength` is now 10
            greet breaks tone: no longer takes "formal"
            greet breaks times: must now be integer, no longer number
            greet breaks times: `maximum` was 5 and is 3
            greet changes name: `pattern` is new (may break callers too)
            greet changes the version goes from 1.0.0 to 1.0.0; a breaking change wants a new major version
            breaking: true
        "#]],
    );
    check(
        &narrow,
        &wide,
        expect![[r#"
            greet adds name: `minLength` was 2 and is gone
            greet adds name: `maxLength` was 10 and is gone
            greet adds name: `pattern` is gone
            greet adds tone: now takes "formal"
            greet adds times: may now be number
            greet adds times: `maximum` was 3 and is 5
            breaking: false
        "#]],
    );
}

#[test]
fn a_parameter_that_is_gone_breaks() {
    let with = patched(
        json!({ "parameters": { "properties": { "tone": { "type": "string", "description": "d" } } } }),
    );
    check(
        &with,
        &sound(),
        expect![[r#"
        greet breaks tone: is gone
          {"name":"x","tone":"x"}
        greet changes the version goes from 1.0.0 to 1.0.0; a breaking change wants a new major version
        breaking: true
    "#]],
    );
}

#[test]
fn changes_beside_the_parameters_are_told() {
    let changed = patched(json!({
        "version": "2.0.0", "description": "Greets.", "allowedModes": ["text"], "requiresConfirmation": true,
        "latencyBudgetMs": 200, "returns": { "type": "string" }, "availability": { "authenticated": true },
    }));
    check(
        &sound(),
        &changed,
        expect![[r#"
        greet breaks no longer allowed in voice
        greet breaks calls that ran now wait for the user's approval
        greet breaks the conditions for using the tool changed
        greet changes `version` was "1.0.0" and is "2.0.0"
        greet changes the description changed
        greet changes `latencyBudgetMs` was 100 and is 200
        greet adds answers are now held to a schema
        breaking: true
    "#]],
    );
}

#[test]
fn answers_that_were_not_allowed_before_break() {
    let narrow = patched(
        json!({ "returns": { "type": "object", "additionalProperties": false, "required": ["greeting"],
        "properties": { "greeting": { "type": "string" } } } }),
    );
    let wide = patched(json!({ "returns": { "type": "object", "additionalProperties": false,
        "properties": { "greeting": { "type": "string" } } } }));
    check(
        &narrow,
        &wide,
        expect![[r#"
        greet breaks answers may now be something that was not allowed, such as {}
        greet changes the version goes from 1.0.0 to 1.0.0; a breaking change wants a new major version
        breaking: true
    "#]],
    );
    check(
        &wide,
        &narrow,
        expect![[r#"
        greet changes the schema of answers changed
        breaking: false
    "#]],
    );
}

#[test]
fn changes_inside_references_and_lists_are_followed() {
    let with = |maximum: u64| {
        patched(json!({ "parameters": {
            "properties": { "people": { "type": "array", "description": "d", "items": { "$ref": "#/$defs/person" } } },
            "$defs": { "person": { "type": "object", "additionalProperties": false, "properties": {
                "age": { "type": "integer", "description": "d", "maximum": maximum },
            } } },
        } }))
    };
    check(
        &with(150),
        &with(120),
        expect![[r#"
        greet breaks people[].age: `maximum` was 150 and is 120
          {"name":"x","people":[{"age":121}]}
        greet changes the version goes from 1.0.0 to 1.0.0; a breaking change wants a new major version
        breaking: true
    "#]],
    );
}

/// The parameter `k` before and after, and whether callers break.
#[test]
fn breaking_is_judged_by_calls_and_not_by_words() {
    let text = || json!({ "type": "string", "description": "d" });
    let with = |keywords: serde_json::Value| {
        let mut schema = json!({ "description": "d" });
        schema.as_object_mut().unwrap().extend(keywords.as_object().unwrap().clone());
        schema
    };
    let object = |rest: serde_json::Value| {
        let mut schema = json!({ "type": "object", "description": "d" });
        schema.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        schema
    };
    let any = |branches: serde_json::Value| with(json!({ "anyOf": branches }));
    let (string, number, nothing) =
        (json!({ "type": "string" }), json!({ "type": "number" }), json!({ "type": "null" }));
    for (old, new, breaks) in [
        // What was accepted is refused.
        (with(json!({ "type": "string", "nullable": true })), text(), true),
        (
            object(json!({ "additionalProperties": string })),
            object(json!({ "additionalProperties": number })),
            true,
        ),
        (
            object(json!({ "additionalProperties": string })),
            object(json!({ "additionalProperties": { "type": "string", "minLength": 1 } })),
            true,
        ),
        (object(json!({})), object(json!({ "additionalProperties": string })), true),
        (object(json!({})), object(json!({ "properties": { "x": text() } })), true),
        (any(json!([string, number])), any(json!([string])), true),
        // What was accepted still is.
        (text(), any(json!([string, number])), false),
        (any(json!([string, nothing])), any(json!([string, nothing, number])), false),
        (any(json!([string, number])), any(json!([number, string])), false),
        (any(json!([string, nothing])), with(json!({ "type": ["string", "null"] })), false),
        (with(json!({ "oneOf": [string, number] })), any(json!([string, number])), false),
        (
            with(json!({ "type": "integer", "exclusiveMinimum": 0 })),
            with(json!({ "type": "integer", "minimum": 1 })),
            false,
        ),
        (
            with(json!({ "type": "integer", "multipleOf": 4 })),
            with(json!({ "type": "integer", "multipleOf": 2 })),
            false,
        ),
        (text(), with(json!({ "type": "string", "minLength": 0 })), false),
        (with(json!({ "type": "integer" })), with(json!({ "type": "number" })), false),
        (text(), with(json!({ "type": ["string", "null"] })), false),
    ] {
        let folder =
            |schema: &serde_json::Value| patched(json!({ "parameters": { "properties": { "k": schema } } }));
        let difference = diff(&artifact(&folder(&old)), &artifact(&folder(&new)));
        assert_eq!(difference.is_breaking(), breaks, "{old} to {new}: {:#?}", difference.changes);
    }
}

#[test]
fn a_required_parameter_that_loses_its_default_breaks() {
    let with = |default: serde_json::Value| {
        let files = patched(json!({ "parameters": { "required": ["name", "tone"], "properties": {
            "tone": { "type": "string", "description": "d", "default": default },
        } } }));
        files.write("greet/guide.md", GUIDE);
        files
    };
    check(
        &with(json!("kind")),
        &with(json!(null)),
        expect![[r#"
        greet breaks tone: is required and has lost its default
        greet changes tone: the default was "kind" and is nothing
        greet changes the version goes from 1.0.0 to 1.0.0; a breaking change wants a new major version
        breaking: true
    "#]],
    );
}

#[test]
fn a_recursive_definition_is_told_about_once() {
    let with = |maximum: u64| {
        patched(json!({ "parameters": {
            "properties": { "tree": { "$ref": "#/$defs/node" } },
            "$defs": { "node": { "type": "object", "additionalProperties": false, "properties": {
                "value": { "type": "integer", "description": "d", "maximum": maximum },
                "next": { "$ref": "#/$defs/node" },
            } } },
        } }))
    };
    check(
        &with(10),
        &with(5),
        expect![[r#"
        greet breaks tree.value: `maximum` was 10 and is 5
          {"name":"x","tree":{"value":6}}
        greet changes the version goes from 1.0.0 to 1.0.0; a breaking change wants a new major version
        breaking: true
    "#]],
    );
}
