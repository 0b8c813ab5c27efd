//! Tool folders of the older form: `doc.md`, `doc_summary.md`, and what they import from `error-types.js`.

use std::path::{Path, PathBuf};
use std::process::Command;

use expect_test::expect;

use crate::terminal::{check, quarterdeck};

fn folders() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/older-tools")
}

#[test]
fn three_folders_of_the_older_form_are_tested_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    check(
        folder.path(),
        &["test", "--tools", folders().to_str().unwrap()],
        expect![[r#"
        exit 0
        --- stdout
        pass  calendar_hold  example 1 of the guide
        pass  calendar_hold  asks first, because the word alone means always
        pass  calendar_hold  holds the hour once it was approved
        pass  ignore_user  example 1 of the guide
        pass  ignore_user  blocks by the message alone
        pass  ignore_user  ends a call
        pass  ignore_user  refuses a moment
        pass  kb_glossary  example 1 of the guide
        pass  kb_glossary  finds the record of a term
        pass  kb_glossary  a term that stands nowhere is a success
        pass  kb_glossary  refuses a blank term in the handler's own words
        11 passed, 0 failed
        --- stderr
    "#]],
    );
    assert!(!folders().join("tool_registry.json").exists(), "nothing is written");
}

#[test]
fn folders_of_the_older_form_build_and_only_warn_of_a_block_that_is_no_call() {
    let folder = tempfile::tempdir().unwrap();
    let copied =
        Command::new("cp").arg("-r").arg(folders()).arg(folder.path().join("tools")).status().unwrap();
    assert!(copied.success());
    let output = quarterdeck(folder.path(), &["build"]);
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{printed}");
    let warned = [printed, String::from_utf8_lossy(&output.stdout).into_owned()].concat();
    assert!(warned.contains("QD0304") && warned.contains("kb-glossary/doc.md"), "{warned}");
    // A summary that is too long keeps the folder out.
    std::fs::write(folder.path().join("tools/kb-glossary/doc_summary.md"), "Looks up words. ".repeat(16))
        .unwrap();
    let output = quarterdeck(folder.path(), &["build"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("QD0328"), "{output:?}");
}
