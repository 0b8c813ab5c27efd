//! Broken input of every kind: a clear error, no panic, and the other tools are still looked at.

use std::os::unix::fs::symlink;
use std::process::Command;

use expect_test::expect;
use quarterdeck_testkit::tree;
use serde_json::json;

use crate::world::{check, compile_files, patched, sound};

#[test]
fn an_empty_tools_folder_says_how_to_begin() {
    check(
        &tree(""),
        expect![[r#"
        error QD0001
          there are no tools in the tools folder
          help: make a first one with `quarterdeck new my-tool`, or point `--tools` at another folder
    "#]],
    );
}

#[test]
fn bytes_that_are_not_utf8_are_refused_with_their_place() {
    let files = sound();
    files.write("greet/schema.json", b"{ \"toolId\": \"gr\xff\xfeet\" }");
    check(
        &files,
        expect![[r#"
        error QD0005 greet/schema.json
          greet/schema.json is not UTF-8 text: the byte at offset 15 does not belong
          help: save the file as UTF-8
    "#]],
    );
}

#[test]
fn a_schema_of_50_mb_is_not_even_read() {
    let files = sound();
    files.write("greet/schema.json", " ".repeat(50_000_000));
    check(
        &files,
        expect![[r#"
        error QD0004 greet/schema.json
          greet/schema.json is larger than 1 MiB
          help: move data out of the tool's folder
    "#]],
    );
}

#[test]
fn json_nested_10_000_deep_is_refused() {
    let files = sound();
    files.write("greet/schema.json", format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000)));
    check(
        &files,
        expect![[r#"
        error QD0006 greet/schema.json:1:128 `[`
          `schema.json` nests too deeply
          help: at most 127 levels are read; flatten the schema
    "#]],
    );
}

#[test]
fn a_schema_at_the_limit_of_nesting_is_judged() {
    let mut deep = json!({ "type": "string", "description": "d" });
    for _ in 0..50 {
        deep = json!({ "type": "object", "description": "d", "additionalProperties": false, "properties": { "a": deep } });
    }
    let compilation = compile_files(&patched(json!({ "parameters": { "properties": { "deep": deep } } })));
    assert!(compilation.artifact.is_some());
}

#[test]
fn broken_json_is_shown_where_it_breaks() {
    let files = sound();
    files.write("greet/schema.json", "{\n  \"toolId\": \"greet\",\n  \"version\": '1.0.0'\n}");
    check(
        &files,
        expect![[r#"
        error QD0006 greet/schema.json:3:14 `'`
          `schema.json` is not JSON: expected value
          help: look just before this place for a missing comma, quote or bracket
    "#]],
    );
    files.write("greet/schema.json", "");
    check(
        &files,
        expect![[r#"
        error QD0006 greet/schema.json:1:1 ``
          `schema.json` is not JSON: EOF while parsing a value
          help: look just before this place for a missing comma, quote or bracket
    "#]],
    );
    files.write("greet/schema.json", "[]");
    check(
        &files,
        expect![[r#"
        error QD0006 greet/schema.json:1:1 `[`
          `schema.json` is not an object
          help: write `{ "toolId": …, … }`
    "#]],
    );
    files.write("greet/schema.json", "{ \"é\": tru }");
    check(
        &files,
        expect![[r#"
        error QD0006 greet/schema.json:1:11 ` `
          `schema.json` is not JSON: expected ident
          help: look just before this place for a missing comma, quote or bracket
    "#]],
    );
}

#[test]
fn a_key_that_stands_twice_is_an_error() {
    let files = sound();
    let text = std::fs::read_to_string(files.join("greet/schema.json")).unwrap();
    files.write("greet/schema.json", text.replacen("\"version\"", "\"toolId\": \"greet\", \"version\"", 1));
    check(
        &files,
        expect![[r#"
        error QD0007 greet/schema.json:3:3 `"toolId"`
          the key "toolId" stands twice
          help: remove one of the two
    "#]],
    );
}

#[test]
fn references_in_a_circle_are_refused_and_recursion_is_not() {
    let circle = json!({ "parameters": {
        "properties": { "a": { "$ref": "#/$defs/a" } },
        "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } },
    } });
    check(
        &patched(circle),
        expect![[r##"
        error QD0206 greet/schema.json:26:17 `"#/$defs/a"`
          the reference leads back to this schema for the same value, so judging it would never end
          help: let the recursion go through `properties` or `items`, so that each round sees a smaller part
    "##]],
    );
    let recursion = json!({ "parameters": {
        "properties": { "tree": { "$ref": "#/$defs/node" } },
        "$defs": { "node": { "type": "object", "additionalProperties": false, "properties": {
            "children": { "type": "array", "description": "d", "items": { "$ref": "#/$defs/node" } },
        } } },
    } });
    check(
        &patched(recursion),
        expect![[r#"
        fine
    "#]],
    );
}

#[test]
fn definitions_that_multiply_do_not_explode() {
    // Each level refers twice to the next: written out, there would be 2^40 nodes.
    let mut definitions = serde_json::Map::new();
    for level in 0..40 {
        let next = json!({ "$ref": format!("#/$defs/l{}", level + 1) });
        definitions.insert(
            format!("l{level}"),
            json!({ "type": "object", "additionalProperties": false, "properties": { "a": next, "b": next } }),
        );
    }
    definitions.insert("l40".into(), json!({ "type": "string" }));
    let compilation = compile_files(&patched(json!({ "parameters": {
        "properties": { "bomb": { "$ref": "#/$defs/l0" } },
        "$defs": definitions,
    } })));
    assert!(
        compilation.artifact.is_some(),
        "the tool builds; providers that would need it written out do not get it"
    );
}

#[test]
fn catastrophic_patterns_do_not_hold_up_a_build() {
    let files = patched(json!({ "parameters": { "properties": {
        "name": { "type": "string", "description": "d", "pattern": "^(?=(a+)+b)(a+)+$" },
    } } }));
    files.write(
        "greet/guide.md",
        format!(
            "# Greet\n\nGreets people kindly.\n\n## Examples\n\n```json\n{{ \"name\": \"{}!\" }}\n```\n",
            "a".repeat(5_000)
        ),
    );
    let compilation = compile_files(&files);
    assert!(compilation.diagnostics.iter().any(|problem| problem.rule.code == "QD0304"
        || problem.rule.code == "QD0208"
        || problem.rule.code == "QD0211"));
    let huge = patched(json!({ "parameters": { "properties": {
        "name": { "type": "string", "description": "d", "pattern": "((((a{1,100}){1,100}){1,100}){1,100}){1,100}" },
    } } }));
    assert!(!compile_files(&huge).diagnostics.is_empty());
}

#[test]
fn links_in_circles_and_to_nowhere_are_errors_of_their_tool() {
    let files = sound();
    symlink("loop", files.join("loop")).unwrap();
    std::fs::create_dir(files.join("linked")).unwrap();
    symlink("schema.json", files.join("linked/schema.json")).unwrap();
    symlink("gone.md", files.join("linked/guide.md")).unwrap();
    symlink("..", files.join("greet/up")).unwrap();
    check(
        &files,
        expect![[r#"
        error QD0002 linked
          there is no handler
          help: write `handler.js` or `handler.rs`; `quarterdeck new` makes one that runs
        error QD0003 linked/guide.md
          cannot read linked/guide.md: No such file or directory (os error 2)
          help: make it a readable, regular file, or remove it
        error QD0003 linked/schema.json
          cannot read linked/schema.json: Too many levels of symbolic links (os error 40)
          help: make it a readable, regular file, or remove it
        error QD0003 loop
          cannot read loop: Too many levels of symbolic links (os error 40)
          help: make it a readable, regular file, or remove it
    "#]],
    );
}

#[test]
fn a_folder_or_a_pipe_in_the_place_of_a_file_is_refused() {
    let files = sound();
    std::fs::remove_file(files.join("greet/schema.json")).unwrap();
    assert!(Command::new("mkfifo").arg(files.join("greet/schema.json")).status().unwrap().success());
    check(
        &files,
        expect![[r#"
        error QD0003 greet/schema.json
          cannot read greet/schema.json: it is not a regular file
          help: make it a readable, regular file, or remove it
    "#]],
    );
    std::fs::remove_file(files.join("greet/schema.json")).unwrap();
    std::fs::create_dir(files.join("greet/schema.json")).unwrap();
    check(
        &files,
        expect![[r#"
        error QD0002 greet
          `schema.json` is missing
          help: write one (see `tools/README.md`), or rename the folder to begin with `_` if it is not a tool
    "#]],
    );
}

#[test]
fn a_folder_with_too_many_files_is_refused_once() {
    let files = sound();
    for number in 0..300 {
        files.write(&format!("greet/lib/m{number}.js"), "");
    }
    let codes: Vec<_> = compile_files(&files).diagnostics.iter().map(|problem| problem.rule.code).collect();
    assert_eq!(codes.iter().filter(|code| **code == "QD0004").count(), 1);
}

/// What grows with the square of a list's length takes minutes for one that fills a file, and is ended as a hang.
#[test]
fn lists_as_long_as_a_file_build_in_proportion_to_their_length() {
    let described = |schema: serde_json::Value| {
        let mut schema = schema;
        schema["description"] = json!("d");
        json!({ "parameters": { "properties": { "list": schema } } })
    };
    let words = || (0..35_000).map(|number| format!("value-{number}"));
    let branches: Vec<_> =
        (0..4_000).map(|number| json!({ "type": "string", "maxLength": number })).collect();
    let properties = |more: serde_json::Value| -> serde_json::Map<_, _> {
        let property = |number| {
            let mut property = json!({ "type": "string", "description": "d" });
            property.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
            (format!("p{number}"), property)
        };
        (0..2_000).map(property).collect()
    };
    let (plain, lossy) = (properties(json!({})), properties(json!({ "format": "date" })));
    let names: Vec<_> = plain.keys().cloned().collect();
    for list in [
        json!({ "type": "string", "enum": words().collect::<Vec<_>>() }),
        json!({ "type": "integer", "enum": (0..35_000).collect::<Vec<_>>() }),
        json!({ "anyOf": words().take(10_000).map(|word| json!({ "const": word })).collect::<Vec<_>>() }),
        json!({ "anyOf": branches }),
        json!({ "type": "object", "additionalProperties": false, "properties": plain, "required": names }),
        json!({ "type": "object", "additionalProperties": false, "properties": lossy }),
    ] {
        let compilation = compile_files(&patched(described(list)));
        assert!(compilation.artifact.is_some(), "{:?}", compilation.diagnostics.first());
    }
}

#[test]
fn a_pattern_without_a_bound_is_refused_with_the_reason_and_a_way_out() {
    check(
        &patched(json!({ "parameters": { "properties": {
            "pair": { "type": "string", "description": "d", "pattern": "^(a|b)\\1$" },
            "long": { "type": "string", "description": "d", "pattern": "(a{1000}){1000}" },
            "fine": { "type": "string", "description": "d", "pattern": "^(?=.*\\d)(?<!x).{8,64}$" },
        } } })),
        expect![[r#"
            error QD0211 greet/schema.json:28:20 `"^(a|b)\\1$"`
              the pattern has a back-reference, so the time it takes on a text has no bound
              help: list the alternatives, as in (aa|bb), or let the handler compare the two parts
            error QD0211 greet/schema.json:33:20 `"(a{1000}){1000}"`
              the pattern is too large once its repetitions are written out, or nested too deeply
              help: make it smaller: `maxLength` limits a length better than a counted repetition
        "#]],
    );
}
