//! What `quarterdeck new` writes in languages that are compiled to WebAssembly: it compiles by the line that is printed, with the
//! real compiler, and does what the tool in JavaScript does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use quarterdeck_testkit::{Tree, tree};
use serde_json::Value;

use crate::terminal::{quarterdeck, stdout_json};

/// The language, its source, and what is said of a folder that has no more than that.
const COMPILED: [(&str, &str, &str); 4] = [
    ("c", "handler.c", "`handler.c` cannot be the handler: C is compiled first"),
    ("rust-wasm", "wasm.rs", "`wasm.rs` cannot be the handler: Rust for WebAssembly is compiled first"),
    ("zig", "handler.zig", "`handler.zig` cannot be the handler: Zig is compiled first"),
    (
        "assemblyscript",
        "assembly.ts",
        "`assembly.ts` cannot be the handler: AssemblyScript is compiled first",
    ),
];

/// Cases beside those of the template: what may stand in a text, and keys in any order.
const INPUTS: &str = r#"[
  { "name": "the unit before the text", "args": { "unit": "characters", "text": "Fram" },
    "expect": { "ok": true, "data": { "count": 4, "unit": "characters" } }, "exact": true },
  { "name": "the unit after the text", "args": { "text": "Fram", "unit": "characters" },
    "expect": { "ok": true, "data": { "count": 4, "unit": "characters" } }, "exact": true },
  { "name": "all spaces of ASCII", "args": { "text": "a\tb\nc\r\nd\u000be\ff g" },
    "expect": { "ok": true, "data": { "count": 7, "unit": "words" } } },
  { "name": "each of them is a character", "args": { "text": "a\tb\nc\r\nd\u000be\ff g", "unit": "characters" },
    "expect": { "ok": true, "data": { "count": 14, "unit": "characters" } } },
  { "name": "none of them at the ends", "args": { "text": " \n\t\u000bthin ice\f\r\n ", "unit": "characters" },
    "expect": { "ok": true, "data": { "count": 8, "unit": "characters" } } },
  { "name": "other control characters are no spaces", "args": { "text": "\u0001\u0008\u001b\u007f" },
    "expect": { "ok": true, "data": { "count": 1, "unit": "words" } } },
  { "name": "and count", "args": { "text": "\u0001\u0008\u001b\u007f", "unit": "characters" },
    "expect": { "ok": true, "data": { "count": 4, "unit": "characters" } } },
  { "name": "quotes and backslashes", "args": { "text": "\\\" \\ \/ \"\\", "unit": "characters" },
    "expect": { "ok": true, "data": { "count": 9, "unit": "characters" } } },
  { "name": "a backslash at the end", "args": { "text": "to the end \\" },
    "expect": { "ok": true, "data": { "count": 4, "unit": "words" } } },
  { "name": "what looks like an escape", "args": { "text": "\\u0020 \\n\\t", "unit": "characters" },
    "expect": { "ok": true, "data": { "count": 11, "unit": "characters" } } },
  { "name": "what looks like an escape is no space", "args": { "text": "\\u0020 \\n\\t" },
    "expect": { "ok": true, "data": { "count": 2, "unit": "words" } } },
  { "name": "what looks like another argument", "args": { "text": "\"unit\":\"characters\"" },
    "expect": { "ok": true, "data": { "count": 1, "unit": "words" } } },
  { "name": "what looks like the end of the arguments", "args": { "text": "a\"},\"context\":{ \"text\":\"b c" },
    "expect": { "ok": true, "data": { "count": 3, "unit": "words" } } },
  { "name": "letters of two, three and four bytes", "args": { "text": "Ærø 漢字 😀🇳🇴" },
    "expect": { "ok": true, "data": { "count": 3, "unit": "words" } } },
  { "name": "are a character each", "args": { "text": "Ærø 漢字 😀🇳🇴", "unit": "characters" },
    "expect": { "ok": true, "data": { "count": 10, "unit": "characters" } } },
  { "name": "also where they were escaped", "args": { "text": "\u00c6r\u00f8 \ud83d\ude00", "unit": "characters" },
    "expect": { "ok": true, "data": { "count": 5, "unit": "characters" } } },
  { "name": "a letter beside its accent", "args": { "text": "e\u0301", "unit": "characters" },
    "expect": { "ok": true, "data": { "count": 2, "unit": "characters" } } },
  { "name": "spaces of every kind alone", "args": { "text": "\t\n\u000b\f\r " },
    "expect": { "ok": false, "error": { "type": "VALIDATION", "message": "The text has no words." } } },
  LONG_TEXT
]"#;

/// The cases above, and as many letters as the schema allows.
fn inputs() -> String {
    let text = "😀 ".repeat(500);
    let longest = format!(
        r#"{{ "name": "a thousand characters", "args": {{ "text": "{text}" }},
              "expect": {{ "ok": true, "data": {{ "count": 500, "unit": "words" }} }} }}"#
    );
    INPUTS.replace("LONG_TEXT", &longest)
}

/// A new tool, and the line that is printed as the next one.
fn scaffold(language: &str) -> (Tree, String) {
    let files = tree("");
    let made = quarterdeck(files.path(), &["new", "word-count", "--language", language]);
    let printed = String::from_utf8_lossy(&made.stderr).into_owned();
    assert!(made.status.success(), "{printed}");
    let (_, next) = printed.split_once("next: ").unwrap();
    (files, next.trim().to_owned())
}

/// The folder of the compilers, or nothing where there is none for this language, which is said.
fn compilers(program: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/wasm-compilers");
    if folder.join("bin").join(program).exists() {
        return Some(folder.canonicalize().unwrap());
    }
    let required = std::env::var("QUARTERDECK_REQUIRE_CLIENTS").is_ok_and(|value| value == "1");
    assert!(!required, "`{program}` is required here; `scripts/wasm-compilers` installs it");
    #[expect(clippy::print_stderr, reason = "the reader of the result must know that nothing was tried")]
    {
        eprintln!("SKIPPED: there is no `{program}`; `scripts/wasm-compilers` installs it");
    }
    None
}

/// Does what is printed, as in a shell, and the cases pass.
fn run_next_line(files: &Tree, line: &str, compilers: &Path) {
    fs::write(files.join("tools/word-count/inputs.case.json"), inputs()).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_quarterdeck")).parent().unwrap();
    let inherited = std::env::var_os("PATH").unwrap();
    let folders =
        [compilers.join("bin"), program.to_owned()].into_iter().chain(std::env::split_paths(&inherited));
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(files.path())
        .env("PATH", std::env::join_paths(folders).unwrap())
        // Zig keeps what it compiles of its library, by default in the user's home.
        .env("ZIG_GLOBAL_CACHE_DIR", compilers.join("zig-cache"))
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}\n{printed}");
    let cases: Vec<Value> = serde_json::from_str(&inputs()).unwrap();
    // Three cases and two examples are the template's.
    assert!(printed.contains(&format!("{} passed, 0 failed", cases.len() + 5)), "{printed}");
}

fn compiles_and_passes(language: &str, program: &str) {
    let Some(compilers) = compilers(program) else { return };
    let (files, line) = scaffold(language);
    run_next_line(&files, &line, &compilers);
    let checked = stdout_json(&quarterdeck(files.path(), &["check", "--format", "json"]));
    assert_eq!((&checked["errors"], &checked["warnings"]), (&0.into(), &0.into()), "{checked:#}");
    assert!(quarterdeck(files.path(), &["build"]).status.success());
    let artifact = fs::read_to_string(files.join("tools/tool_registry.json")).unwrap();
    let artifact: Value = serde_json::from_str(&artifact).unwrap();
    let handler = &artifact["tools"][0]["handler"];
    assert_eq!(handler["path"], "word-count/handler.wasm");
    // The source is no part of the tool.
    assert_eq!(handler["files"].as_object().unwrap().len(), 1, "{handler:#}");
}

#[test]
fn scaffold_in_javascript_passes_the_same_cases() {
    let (files, line) = scaffold("js");
    run_next_line(&files, &line, files.path());
}

#[test]
fn scaffold_in_c_compiles_and_passes() {
    compiles_and_passes("c", "wasm-ld");
}

#[test]
fn scaffold_in_rust_for_wasm_compiles_and_passes() {
    compiles_and_passes("rust-wasm", "rustc");
}

#[test]
fn scaffold_in_zig_compiles_and_passes() {
    compiles_and_passes("zig", "zig");
}

#[test]
fn scaffold_in_assemblyscript_compiles_and_passes() {
    compiles_and_passes("assemblyscript", "asc");
}

#[test]
fn source_is_compiled_before_the_folder_is_checked() {
    for (language, source, expected) in COMPILED {
        let (files, _) = scaffold(language);
        assert!(fs::read_to_string(files.join("tools/word-count").join(source)).unwrap().contains("execute"));
        assert!(!files.join("tools/quarterdeck.d.ts").exists());
        let checked = quarterdeck(files.path(), &["check"]);
        let told =
            String::from_utf8_lossy(&checked.stderr).into_owned() + &String::from_utf8_lossy(&checked.stdout);
        assert!(told.contains(expected), "{told}");
        let other =
            quarterdeck(files.path(), &["new", "note", "--language", language, "--category", "action"]);
        assert!(!other.status.success());
        assert!(!files.join("tools/note").exists());
    }
}
