use std::sync::Arc;

use expect_test::expect;
use quarterdeck_compiler::{Tree, compile};
use quarterdeck_contracts::handler::{FileType, Finding, FindingKind, HandlerSource, Inspection, Inspector};
use quarterdeck_contracts::{HandlerKind, sha256};

use crate::world::{artifact, check, expect_diagnostics, inspectors, options, sound};

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
          response schema version "3.0.0" is not one of 1.0.0, 1.1.0 and 2.0.0
          help: write `export const responseSchemaVersion = "1.1.0";` or remove the export
    "#]],
    );
}

#[test]
fn a_handler_in_a_form_that_is_not_taken_is_refused_with_the_way_out() {
    for (name, expected) in [
        (
            "handler.mts",
            expect![[r#"
                error QD0012 greet/handler.mts
                  `handler.mts` cannot be the handler: the file of a handler has another name
                  help: rename it to `handler.ts`, which is an ES module too
            "#]],
        ),
        (
            "handler.cjs",
            expect![[r#"
                error QD0012 greet/handler.cjs
                  `handler.cjs` cannot be the handler: CommonJS is not taken
                  help: write `handler.js` as an ES module that exports `execute`
            "#]],
        ),
        (
            "handler.mjs",
            expect![[r#"
                error QD0012 greet/handler.mjs
                  `handler.mjs` cannot be the handler: the file of a handler has another name
                  help: rename it to `handler.js`, which is an ES module too
            "#]],
        ),
    ] {
        let files = sound();
        std::fs::rename(files.join("greet/handler.js"), files.join(&format!("greet/{name}"))).unwrap();
        check(&files, expected);
        // What it was compiled to lies beside it.
        files.write("greet/handler.js", "export function execute() {}");
        check(
            &files,
            expect![[r#"
            fine
        "#]],
        );
    }
}

#[test]
fn what_only_node_has_is_told_where_it_stands() {
    let files = sound();
    files.write("greet/handler.js", "const fs = require('fs');\nmodule.exports.execute = () => fs;");
    check(
        &files,
        expect![[r#"
            warning QD0406 greet/handler.js:1:12 `require`
              handlers have no `require`: this line will throw
              help: `import` from "quarterdeck" or from a file of this folder, such as "./parse.js"; `fetch`, `URL` and `crypto` are there without an import
            error QD0402 greet/handler.js:2:1 `module`
              the handler does not export `execute`: `module` exports nothing
              help: this is CommonJS, and handlers are ES modules: write `export async function execute({ args, context }) { … }`
        "#]],
    );
    files.write("greet/handler.js", "export default function execute() {}");
    check(
        &files,
        expect![[r#"
            error QD0402 greet/handler.js:1:1 `export`
              the handler exports a default and no `execute`: write `export async function execute`
              help: export an `execute` function, as `tools/README.md` shows
        "#]],
    );
    files.write("greet/handler.js", "import { ToolEror } from 'quarterdeck';\nexport function execute() {}");
    check(
        &files,
        expect![[r#"
            error QD0403 greet/handler.js:1:10 `ToolEror`
              Could not find export 'ToolEror' in module 'quarterdeck'; it has ToolError, ErrorType, IntentType and validateToolResponse
              help: import from "quarterdeck" or from a file of this folder, such as "./parse.js"
        "#]],
    );
    files.write(
        "greet/handler.js",
        "export function execute() {\n  return require('fs') ?? process.env.HOME;\n}",
    );
    check(
        &files,
        expect![[r#"
            warning QD0406 greet/handler.js:2:10 `require`
              handlers have no `require`: this line will throw
              help: `import` from "quarterdeck" or from a file of this folder, such as "./parse.js"; `fetch`, `URL` and `crypto` are there without an import
            warning QD0406 greet/handler.js:2:27 `process`
              handlers have no `process`: this line will throw
              help: declare a key under `secrets` in schema.json, and the server adds it to requests; what is no secret is a constant of the handler
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
          help: run `cargo build` and use the new binary; until then the tool is left out
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

/// A kind of handlers that is registered by this test alone: a module that begins with `\0toy`, with a note beside it.
struct ToyInspector;

const TOY_KIND: HandlerKind = HandlerKind::new("toy");

impl Inspector for ToyInspector {
    fn entry_file(&self) -> &'static str {
        "handler.toy"
    }

    fn file_types(&self) -> &'static [FileType] {
        const { &[FileType::binary("toy")] }
    }

    fn inspect(&self, source: HandlerSource<'_>) -> Inspection {
        let files = vec![source.entry.to_owned(), source.entry.replace("handler.toy", "note.json")];
        let findings = match source.files[source.entry].starts_with(b"\0toy") {
            true => Vec::new(),
            false => vec![Finding {
                kind: FindingKind::Syntax,
                file: source.entry.to_owned(),
                position: None,
                message: "the module has no toy header".into(),
            }],
        };
        Inspection { files, findings }
    }
}

#[test]
fn registered_kind_of_handler_is_found_inspected_and_hashed_as_bytes() {
    let inspectors = inspectors().with(TOY_KIND, Arc::new(ToyInspector));
    let build = |files: &quarterdeck_testkit::Tree| {
        let tree = Tree::read(files.path(), &inspectors).unwrap();
        compile(&tree, &options(inspectors.clone(), false))
    };
    let files = sound();
    let (module, note) = (b"\0toy\xff\xfe", "\u{feff}{}");
    files.write("greet/handler.toy", module);
    files.write("greet/note.json", note);
    expect_diagnostics(
        &build(&files),
        expect![[r#"
            error QD0008 greet
              the tool has both `handler.js` and `handler.toy`
              help: keep one of them
        "#]],
    );
    std::fs::remove_file(files.join("greet/handler.js")).unwrap();
    let handler = build(&files).artifact.unwrap().tools.remove(0).handler;
    assert_eq!((handler.kind, handler.path.as_str()), (TOY_KIND, "greet/handler.toy"));
    let hashes = [("greet/handler.toy", sha256(module)), ("greet/note.json", sha256(note.as_bytes()))];
    assert_eq!(handler.files, hashes.map(|(path, hash)| (path.to_owned(), hash)).into());

    files.write("greet/handler.toy", b"toy");
    expect_diagnostics(
        &build(&files),
        expect![[r#"
            error QD0401 greet/handler.toy
              the module has no toy header
              help: correct the syntax; nothing was run
        "#]],
    );
    std::fs::remove_file(files.join("greet/handler.toy")).unwrap();
    expect_diagnostics(
        &build(&files),
        expect![[r#"
            error QD0002 greet
              there is no handler
              help: write `handler.js` or `handler.rs` or `handler.toy`; `quarterdeck new` makes one that runs
        "#]],
    );
}
