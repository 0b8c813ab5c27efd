use std::fs;
use std::sync::Arc;

use quarterdeck_contracts::definition_schema;
use quarterdeck_testkit::{FakeContext, tree};
use serde_json::{Value, json};

use crate::terminal::quarterdeck;

// The templates in Rust, compiled as they are.
#[path = "../../templates/action/handler.rs.txt"]
#[expect(unreachable_pub, reason = "it is written for another crate")]
mod action_template;
#[path = "../../templates/retrieval-kb/handler.rs.txt"]
#[expect(unreachable_pub, reason = "it is written for another crate")]
mod retrieval_template;
#[path = "../../templates/utility/handler.rs.txt"]
#[expect(unreachable_pub, reason = "it is written for another crate")]
mod utility_template;

#[test]
fn a_new_folder_of_every_kind_passes_every_check() {
    for category in ["retrieval", "action", "utility"] {
        for language in ["--js", "--rust"] {
            let files = tree("");
            let made = quarterdeck(files.path(), &["new", "count-words", "--category", category, language]);
            assert!(made.status.success(), "{category} {language}");
            let checked = quarterdeck(files.path(), &["check", "--format", "json", "--deny-lossy"]);
            let report: serde_json::Value = serde_json::from_slice(&checked.stdout).unwrap();
            assert_eq!(report["errors"], 0, "{report:#}");
            // A Rust handler cannot be part of a binary that was built before it was written.
            let expected = if language == "--rust" { 1 } else { 0 };
            assert_eq!(report["warnings"], expected, "{report:#}");
        }
    }
}

#[test]
fn new_then_build_then_test_passes_in_a_fresh_folder_for_every_category() {
    for (category, tests) in [("retrieval", 5), ("action", 5), ("utility", 5)] {
        let files = tree("");
        for arguments in
            [&["new", "first-tool", "--category", category][..], &["build"], &["test", "first-tool"]]
        {
            let output = quarterdeck(files.path(), arguments);
            let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{category} {arguments:?}: {printed}");
            if arguments[0] == "test" {
                assert!(printed.ends_with(&format!("{tests} passed, 0 failed\n")), "{category}: {printed}");
            }
        }
    }
}

#[tokio::test]
async fn handlers_in_rust_do_what_those_in_javascript_do() {
    let context = FakeContext::new();
    let note = |text: &str| serde_json::from_value(json!({ "text": text })).unwrap();
    let kept = action_template::execute(note(" Buy rope "), context.clone()).await.unwrap();
    assert_eq!(json!(kept), json!({ "note": "Buy rope", "total": 1 }));
    let kept = action_template::execute(note("Buy tar"), context.clone()).await.unwrap();
    assert_eq!(json!(kept)["total"], 2);
    assert!(action_template::execute(note("  "), context.clone()).await.is_err());
    let asked = serde_json::from_value(json!({ "subject": "hull", "max": 3 })).unwrap();
    let found = retrieval_template::execute(asked, Arc::clone(&context) as _).await.unwrap();
    assert_eq!(json!(found), json!({ "results": [] }));
    let counted = serde_json::from_value(json!({ "text": "the ice", "unit": "words" })).unwrap();
    assert_eq!(json!(utility_template::execute(counted, context).await.unwrap())["count"], 2);
}

#[test]
fn the_definition_names_a_schema_that_an_editor_finds_without_a_network() {
    let read = |path: std::path::PathBuf| -> Value {
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    let files = tree("");
    for category in ["retrieval", "action", "utility"] {
        assert!(quarterdeck(files.path(), &["new", category, "--category", category]).status.success());
        let named = read(files.join(&format!("tools/{category}/schema.json")))["$schema"].clone();
        let found = files.join(&format!("tools/{category}")).join(named.as_str().unwrap());
        assert_eq!(read(found), definition_schema(), "{category}");
    }
    // An older copy is replaced; it is generated.
    files.write("tools/tool.schema.json", "{}");
    assert!(quarterdeck(files.path(), &["new", "later"]).status.success());
    assert_eq!(read(files.join("tools/tool.schema.json")), definition_schema());
    let source = tree("//- schemas/tool.schema.json\n{}\n");
    assert!(quarterdeck(source.path(), &["new", "one"]).status.success());
    assert_eq!(read(source.join("tools/one/schema.json"))["$schema"], "../../schemas/tool.schema.json");
    assert!(!source.join("tools/tool.schema.json").exists());
}

#[test]
fn a_build_is_advised_only_where_it_can_work() {
    let printed = |files: &str| {
        let output = quarterdeck(tree(files).path(), &["new", "count-words", "--rust"]);
        String::from_utf8(output.stderr).unwrap()
    };
    let in_the_source = printed("//- tools/Cargo.toml\n[package]\n");
    assert!(in_the_source.contains("next: cargo build && quarterdeck test count-words"), "{in_the_source}");
    let elsewhere = printed("");
    assert!(!elsewhere.contains("next: cargo build"), "{elsewhere}");
    assert!(elsewhere.contains("nothing compiles it here") && elsewhere.contains("--js"), "{elsewhere}");
}

#[test]
fn javascript_tools_share_type_declarations_and_keep_their_own() {
    let files = tree("");
    assert!(quarterdeck(files.path(), &["new", "one"]).status.success());
    assert!(
        fs::read_to_string(files.join("tools/quarterdeck.d.ts")).unwrap().contains("export interface Call")
    );
    files.write("tools/quarterdeck.d.ts", "// mine");
    assert!(quarterdeck(files.path(), &["new", "two"]).status.success());
    assert_eq!(fs::read_to_string(files.join("tools/quarterdeck.d.ts")).unwrap(), "// mine");
}

#[test]
fn typescript_tools_come_with_settings_for_editors_and_keep_their_own() {
    let files = tree("");
    for (name, category) in [("one", "utility"), ("two", "retrieval"), ("three", "action")] {
        let made =
            quarterdeck(files.path(), &["new", name, "--language", "typescript", "--category", category]);
        let told = String::from_utf8_lossy(&made.stderr).into_owned();
        assert!(made.status.success(), "{told}");
        assert!(told.contains(&format!("next: quarterdeck test {name}")), "{told}");
        let source = fs::read_to_string(files.join(&format!("tools/{name}/handler.ts"))).unwrap();
        assert!(source.contains("import type { Answer, Call } from 'quarterdeck';"));
        assert!(!files.join(&format!("tools/{name}/handler.js")).exists());
    }
    assert!(files.join("tools/quarterdeck.d.ts").exists());
    let settings = fs::read_to_string(files.join("tools/tsconfig.json")).unwrap();
    let documented = include_str!("../../../../docs/TYPESCRIPT.md");
    assert!(documented.contains(&settings), "the settings are those of docs/TYPESCRIPT.md");
    files.write("tools/tsconfig.json", "{}");
    assert!(quarterdeck(files.path(), &["new", "four", "--language", "ts"]).status.success());
    assert_eq!(fs::read_to_string(files.join("tools/tsconfig.json")).unwrap(), "{}");
}

#[test]
fn nothing_is_overwritten_and_bad_names_are_refused() {
    let files = tree("//- tools/taken/notes.txt\nmine");
    for name in ["taken", "7up", "_private", "a.b", ""] {
        let output = quarterdeck(files.path(), &["new", name]);
        assert_eq!(output.status.code(), Some(2), "{name}");
    }
    assert_eq!(fs::read_dir(files.join("tools")).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(files.join("tools/taken/notes.txt")).unwrap(), "mine\n");
}
