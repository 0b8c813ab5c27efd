use expect_test::expect;

use crate::world::{artifact, check, sound};

#[test]
fn there_is_exactly_one_handler() {
    let files = sound();
    files.write("greet/handler.rs", "pub async fn execute() {}");
    check(
        &files,
        expect![[r#"
        error QD0008 greet
          the tool has both `handler.js` and `handler.rs`
          help: keep one of them
    "#]],
    );
    std::fs::remove_file(files.join("greet/handler.rs")).unwrap();
    std::fs::remove_file(files.join("greet/handler.js")).unwrap();
    check(
        &files,
        expect![[r#"
        error QD0002 greet
          there is no handler
          help: write `handler.js` or `handler.rs`; `quarterdeck new` makes one that runs
    "#]],
    );
}

#[test]
fn a_handler_parses_exports_execute_and_imports_what_it_may() {
    let files = sound();
    files.write("greet/handler.js", "export function execute( {");
    check(
        &files,
        expect![[r#"
        error QD0401 greet/handler.js:1:27 ``
          invalid property name
          help: correct the syntax; nothing was run
    "#]],
    );
    files.write("greet/handler.js", "export function run() {}");
    check(
        &files,
        expect![[r#"
        error QD0402 greet/handler.js
          the handler does not export `execute`
          help: export an `execute` function, as `tools/README.md` shows
    "#]],
    );
    files.write("greet/handler.js", "import fs from 'fs';\nexport function execute() {}");
    check(
        &files,
        expect![[r#"
        error QD0403 greet/handler.js:1:16 `'fs'`
          "fs" cannot be imported: handlers have no packages, files or network
          help: import from "quarterdeck" or from a file of this folder, such as "./parse.js"
    "#]],
    );
    files.write(
        "greet/handler.js",
        "export const responseSchemaVersion = '3.0.0';\nexport function execute() {}",
    );
    check(
        &files,
        expect![[r#"
        error QD0404 greet/handler.js:1:38 `'3.0.0'`
          response schema version "3.0.0" is not one of 1.0.0 and 1.1.0
          help: write `export const responseSchemaVersion = "1.1.0";` or remove the export
    "#]],
    );
}

#[test]
fn a_native_handler_that_is_not_in_the_binary_is_noticed() {
    let files = sound();
    std::fs::remove_file(files.join("greet/handler.js")).unwrap();
    files.write("greet/handler.rs", "pub async fn execute(args: Args) -> Result<(), ToolError> { Ok(()) }");
    check(
        &files,
        expect![[r#"
        warning QD0405 greet/handler.rs
          this handler is not part of the binary in use
          help: run `cargo build` and use the new binary
    "#]],
    );
    files.write("greet/handler.rs", "pub fn execute() {}");
    check(
        &files,
        expect![[r#"
        error QD0402 greet/handler.rs
          the handler has no `pub async fn execute(args, context)`
          help: export an `execute` function, as `tools/README.md` shows
    "#]],
    );
    files.write("greet/handler.rs", "pub async fn execute() {\n  \"unfinished\n}");
    check(
        &files,
        expect![[r#"
        error QD0401 greet/handler.rs:2:3 `"`
          the handler does not parse: cannot parse string into token stream
          help: correct the syntax; nothing was run
    "#]],
    );
}

#[test]
fn every_file_that_a_handler_is_made_of_is_hashed() {
    let files = sound();
    files.write(
        "greet/handler.js",
        "import { hello } from './lib/hello.js'; export function execute() { hello(); }",
    );
    files.write("greet/lib/hello.js", "export function hello() {}");
    files.write("greet/lib/unused.js", "export function other() {}");
    let handler = artifact(&files).tools.remove(0).handler;
    assert_eq!(handler.path, "greet/handler.js");
    assert_eq!(handler.files.keys().collect::<Vec<_>>(), ["greet/handler.js", "greet/lib/hello.js"]);
    assert!(handler.files.values().all(|hash| hash.len() == 64));
}
