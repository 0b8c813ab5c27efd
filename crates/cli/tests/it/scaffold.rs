use std::fs;

use quarterdeck_contracts::CaseFile;
use quarterdeck_testkit::tree;

use crate::terminal::quarterdeck;

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
fn its_cases_are_cases() {
    for category in ["action", "utility"] {
        let files = tree("");
        assert!(quarterdeck(files.path(), &["new", "count-words", "--category", category]).status.success());
        let text = fs::read_to_string(files.join("tools/count-words/basic.case.json")).unwrap();
        let cases: CaseFile = serde_json::from_str(&text).unwrap();
        assert_eq!(cases.into_cases().len(), 3);
    }
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
fn nothing_is_overwritten_and_bad_names_are_refused() {
    let files = tree("//- tools/taken/notes.txt\nmine");
    for name in ["taken", "7up", "_private", "a.b", ""] {
        let output = quarterdeck(files.path(), &["new", name]);
        assert_eq!(output.status.code(), Some(2), "{name}");
    }
    assert_eq!(fs::read_dir(files.join("tools")).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(files.join("tools/taken/notes.txt")).unwrap(), "mine\n");
}
