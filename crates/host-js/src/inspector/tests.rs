use std::fmt::Write;

use expect_test::{Expect, expect};

use super::*;

/// Inspects a folder given as pairs of path and text; the first is the entry.
fn check(files: &[(&str, &str)], expected: Expect) {
    let sources = files.iter().map(|(path, text)| (format!("t/{path}"), text.as_bytes().to_vec())).collect();
    let inspection =
        JsInspector.inspect(HandlerSource { entry: &format!("t/{}", files[0].0), files: &sources });
    let mut seen = format!("files {}\n", inspection.files.join(" "));
    for finding in inspection.findings {
        let place = finding.position.map_or(String::new(), |at| format!(":{}:{}", at.line, at.column));
        writeln!(seen, "{:?} {}{place} {}", finding.kind, finding.file, finding.message).unwrap();
    }
    expected.assert_eq(&seen);
}

#[test]
fn a_handler_with_execute_passes() {
    check(
        &[("handler.js", "export async function execute({ args }) { return { ok: true, data: args }; }")],
        expect![[r#"
            files t/handler.js
        "#]],
    );
}

#[test]
fn nothing_of_the_handler_runs() {
    check(
        &[("handler.js", "while (true) {} export const execute = 1; throw new Error('ran');")],
        expect![[r#"
            files t/handler.js
        "#]],
    );
}

#[test]
fn files_of_the_folder_and_the_host_module_can_be_imported() {
    check(
        &[
            (
                "handler.js",
                "import { ToolError, ErrorType, IntentType, validateToolResponse } from 'quarterdeck';
                 import { score } from './lib/score.js';
                 export { execute } from './lib/run.mjs';",
            ),
            (
                "lib/score.js",
                "import { ToolError } from '../../_core/error-types.js'; export const score = 1;",
            ),
            ("lib/run.mjs", "export function execute() {}"),
            ("unused.js", "this does not parse"),
        ],
        expect![[r#"
            files t/handler.js t/lib/run.mjs t/lib/score.js
        "#]],
    );
}

#[test]
fn every_forbidden_import_is_named_with_its_place() {
    check(
        &[
            (
                "handler.js",
                "import fs from 'node:fs';\nimport other from \"../other/handler.js\";\n  import './gone.js';\nimport './ok.js';\nexport function execute() {}",
            ),
            ("ok.js", "import _ from 'lodash';"),
        ],
        expect![[r#"
            files t/handler.js t/ok.js
            Import t/handler.js:1:16 "node:fs" cannot be imported: handlers have no packages, files or network
            Import t/handler.js:2:19 "../other/handler.js" lies outside the tool's own folder
            Import t/handler.js:3:10 "./gone.js" cannot be imported: there is no file t/gone.js
            Import t/ok.js:1:15 "lodash" cannot be imported: handlers have no packages, files or network
        "#]],
    );
}

#[test]
fn dynamic_imports_are_held_to_the_same_rules() {
    check(
        &[
            (
                "handler.js",
                "export async function execute({ args }) {\n  await import('./late.js');\n  await import('fs');\n  await import(args.name);\n}",
            ),
            ("late.js", "export const late = import('./later.js');"),
            ("later.js", "let broken = ;"),
        ],
        expect![[r#"
            files t/handler.js t/late.js t/later.js
            Import t/handler.js:3:9 "fs" cannot be imported: handlers have no packages, files or network
            Import t/handler.js:4:9 an import must name its file as a plain text, so that it can be checked
            Syntax t/later.js:1:14 unexpected token in expression: ';'
        "#]],
    );
}

#[test]
fn a_name_that_is_not_exported_is_reported() {
    check(
        &[(
            "handler.js",
            "import { ToolErorr } from 'quarterdeck'; export function execute() { throw ToolErorr; }",
        )],
        expect![[r#"
            files t/handler.js
            Import t/handler.js:1:10 Could not find export 'ToolErorr' in module 'quarterdeck'; it has ToolError, ErrorType, IntentType and validateToolResponse
        "#]],
    );
}

#[test]
fn syntax_errors_have_their_place() {
    check(
        &[("handler.js", "export function execute() {\n  const a = ;\n}\n")],
        expect![[r#"
            files t/handler.js
            Syntax t/handler.js:2:13 unexpected token in expression: ';'
        "#]],
    );
    check(
        &[("handler.js", "import './lib.js'; export function execute() {}"), ("lib.js", "let x = {")],
        expect![[r#"
            files t/handler.js t/lib.js
            Syntax t/lib.js:1:10 invalid property name
        "#]],
    );
}

#[test]
fn execute_must_be_exported() {
    check(
        &[("handler.js", "async function execute() {}\nexport default execute;")],
        expect![[r#"
            files t/handler.js
            NoExecute t/handler.js:2:1 the handler exports a default and no `execute`: write `export async function execute`
        "#]],
    );
}

#[test]
fn response_versions_are_read_without_running() {
    for version in ["1.0.0", "1.1.0", "2.0.0"] {
        let known =
            format!("export const responseSchemaVersion = '{version}';\nexport function execute() {{}}");
        check(
            &[("handler.js", &known)],
            expect![[r#"
            files t/handler.js
        "#]],
        );
    }
    let unknown = "// responseSchemaVersion = '1.0.0'\nexport const responseSchemaVersion = \"3.0.0\";\nexport function execute() {}";
    check(
        &[("handler.js", unknown)],
        expect![[r#"
            files t/handler.js
            ResponseVersion t/handler.js:2:38 response schema version "3.0.0" is not one of 1.0.0, 1.1.0 and 2.0.0
        "#]],
    );
    let computed = "export const responseSchemaVersion = [1, 1, 0].join('.');\nexport function execute() {}";
    check(
        &[("handler.js", computed)],
        expect![[r#"
            files t/handler.js
            ResponseVersion t/handler.js `responseSchemaVersion` cannot be read without running the handler
        "#]],
    );
}

#[test]
fn hostile_sources_are_refused_and_do_no_harm() {
    let deep =
        format!("export function execute() {{ return {}1{}; }}", "(".repeat(100_000), ")".repeat(100_000));
    let sources = [("t/handler.js".to_owned(), deep.into_bytes())].into();
    let inspection = JsInspector.inspect(HandlerSource { entry: "t/handler.js", files: &sources });
    assert!(!inspection.findings.is_empty());

    let itself =
        [("t/handler.js".to_owned(), b"import './handler.js'; export function execute() {}".to_vec())].into();
    let inspection = JsInspector.inspect(HandlerSource { entry: "t/handler.js", files: &itself });
    assert_eq!(inspection.findings, []);
}

/// Everything that may stand between the word and its bracket, and around them.
#[test]
fn a_dynamic_import_is_found_however_it_is_written() {
    let gaps = [
        "",
        " ",
        "\t",
        "\n",
        "\r\n",
        "\u{b}",
        "\u{c}",
        "\u{a0}",
        "\u{feff}",
        "\u{2003}",
        "\u{2028}",
        "\u{2029}",
        "/**/",
        "/* ( */",
        "/* import */",
        "//\n",
        "// (\n",
        "//\u{2028}",
        " /*\n*/ // x\r ",
        "/***/",
    ];
    let around = [
        ("", ";"),
        ("void ", ";"),
        ("const m = await ", ";"),
        ("`${", "}`;"),
        ("`a${`b${{ c: ", " }.c}`}`;"),
        ("f(", ");"),
        ("x = y /", "/ z;"),
        ("x = a ? ", " : 0;"),
        ("[", "];"),
        ("(() => ", ")();"),
        ("/[/]/.test('') || ", ";"),
        ("x++ / 2; ", ";"),
        (";\u{a0}", ";"),
        (";\u{feff}", "\n{}"),
        ("if (x) 1; else ", ";"),
        ("switch (x) { case 1: ", "; }"),
        ("/* ' */", "/* ' */"),
        ("'\\\\';", ";'\\\\'"),
        ("x = {}\n/1/", ";"),
        ("x = {}\n/", "/ 1;"),
        ("function g() {} /'/.test(\"'\"); ", ";"),
        ("if (x) /'/.test(x); ", " // '"),
        ("label: ", ";"),
        ("class C { static p = ", "; }"),
        ("class D { static { ", "; } }"),
    ];
    let (mut all, mut found) = (0, 0);
    for gap in gaps {
        for (before, after) in around {
            let source = |argument: &str| {
                let import = format!("import{gap}({gap}{argument}{gap})");
                format!("export const execute = 1; let x, y, z, a, f;\n{before}{import}{after}\n")
            };
            for (argument, expected) in [
                ("x", "an import must name its file as a plain text"),
                ("'./' + x", "an import must name its file as a plain text"),
                ("`./x.js`", "an import must name its file as a plain text"),
                ("'fs'", "\"fs\" cannot be imported"),
                ("\"../other/x.js\"", "\"../other/x.js\" lies outside"),
            ] {
                let source = source(argument);
                let messages = messages(&source);
                all += 1;
                // At the start of a statement the engine itself takes not every space for one.
                let is_refused_by_engine = messages.iter().any(|message| message.contains("expect"));
                assert_eq!(messages.len(), 1, "{source:?}: {messages:?}");
                assert!(
                    is_refused_by_engine || messages[0].starts_with(expected),
                    "{source:?}: {messages:?}"
                );
                found += usize::from(!is_refused_by_engine);
            }
        }
    }
    assert!(found * 10 > all * 8, "most of them parse: {found} of {all}");
}

#[test]
fn what_only_looks_like_a_dynamic_import_is_none() {
    for source in [
        "'import(x)'; \"import(x)\"; `import(x)`; `\\${import(x)}`; '\\'import(x)'",
        "/import(x)/; /[/]import(x)/.test(''); x / 1; /\\/import(x)/g",
        "// import(x)\n/* import(x) */ /* `${import(x)} */",
        "x.import(x); x?.import(x); x\n.import/**/(x); x./**/import(x)",
        "({ import(x) {} }); ({ async import(x) {}, get import() { return 1; } }); ({ import: x })",
        "class C { import(x) {} static import(x) {} #import(x) { this.#import(x); } }",
        "reimport(x); import$(x); $import(x); import_(x); _import(x); éimport(x); importé(x); \\u{61}import(x); import\\u0061(x)",
        "import.meta; import /**/ . meta",
        "x = 'a\\\nimport(x)'; x = `\nimport(x)\n`",
        "if (x) /import(x)/.test(x); x = (1)\n;/import(x)/.test(x)",
        "String.raw`\\u import(x)`",
    ] {
        let names =
            "let x, $import, _import, import$, import_, reimport, éimport, importé, aimport, importa;";
        assert_eq!(
            messages(&format!("export const execute = 1; {names}\n{source}\n")),
            Vec::<String>::new(),
            "{source}"
        );
    }
    // An escaped keyword is no keyword, nor any other name.
    let escaped = messages("export const execute = 1; \\u0069mport('fs')");
    assert_eq!(escaped.len(), 1, "the engine refuses it: {escaped:?}");
}

/// What the inspector says about a handler of one file.
fn messages(source: &str) -> Vec<String> {
    let files = BTreeMap::from([("t/handler.js".to_owned(), source.as_bytes().to_vec())]);
    let inspection = JsInspector.inspect(HandlerSource { entry: "t/handler.js", files: &files });
    inspection.findings.into_iter().map(|finding| finding.message).collect()
}
