//! What a tool's author is shown when a handler fails: on the terminal, in tests and in the playground, and nowhere else.

use expect_test::{Expect, expect};
use quarterdeck_testkit::{Tree, tree};
use serde_json::{Value, json};

use crate::serve::Server;
use crate::terminal::{check, quarterdeck, stdout_json};

/// The usual mistakes, each as the body of `execute`.
const MISTAKES: [(&str, &str); 6] = [
    ("uses-require", "const { readFile } = require('fs');"),
    ("reads-environment", "const key = process.env.API_KEY;"),
    ("returns-bare-data", "return { temperature: 3 };"),
    ("exports-the-old-way", "module.exports = { execute };"),
    ("lacks-capability", "const hits = await context.kb.search({ query: 'ice' });"),
    ("lacks-host", "const page = await fetch('https://api.example.com/ice');"),
];

/// A folder of tools with these handlers, each called without arguments.
fn tools(handlers: &[(&str, &str)]) -> Tree {
    let files = tree("");
    for (name, source) in handlers {
        let definition = json!({
            "toolId": name.replace('-', "_"), "version": "1.0.0", "description": format!("Tries {name}."),
            "category": "utility", "sideEffects": "none", "idempotent": true, "requiresConfirmation": false,
            "allowedModes": ["text"], "latencyBudgetMs": 1000, "capabilities": ["store"],
            "parameters": { "type": "object", "additionalProperties": false, "properties": {} },
        });
        files.write(&format!("tools/{name}/schema.json"), definition.to_string());
        let guide = format!("# Try\n\nTries {name}. Only for tests.\n\n## Examples\n\n```json\n{{}}\n```\n");
        files.write(&format!("tools/{name}/guide.md"), guide);
        files.write(&format!("tools/{name}/handler.js"), *source);
    }
    files
}

fn with_body(body: &str) -> String {
    format!("export async function execute({{ args, context }}) {{\n  {body}\n}}\n")
}

fn with_mistakes() -> Tree {
    let sources: Vec<_> = MISTAKES.iter().map(|(name, body)| (*name, with_body(body))).collect();
    tools(&sources.iter().map(|(name, source)| (*name, source.as_str())).collect::<Vec<_>>())
}

fn stderr_of(files: &Tree, arguments: &[&str], expected: Expect) {
    let output = quarterdeck(files.path(), arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    expected.assert_eq(&String::from_utf8(output.stderr).unwrap());
}

#[test]
fn call_prints_the_exception_with_its_stack_its_line_and_a_hint() {
    let files = with_mistakes();
    stderr_of(
        &files,
        &["call", "uses-require"],
        expect![[r#"
        error: ReferenceError: require is not defined
         --> tools/uses-require/handler.js:2:24
          |
        2 |   const { readFile } = require('fs');
          |                        ^
          |
          = note: at execute (tools/uses-require/handler.js:2:24)
          = help: handlers are ES modules without packages and files: `import` from "quarterdeck" or from a file of this folder, such as "./parse.js"; `fetch`, `URL` and `crypto` are there without an import

    "#]],
    );
    stderr_of(
        &files,
        &["call", "reads-environment"],
        expect![[r#"
        error: ReferenceError: process is not defined
         --> tools/reads-environment/handler.js:2:15
          |
        2 |   const key = process.env.API_KEY;
          |               ^
          |
          = note: at execute (tools/reads-environment/handler.js:2:15)
          = help: handlers have no process and no environment: declare a key under `secrets` in reads-environment/schema.json, and the server adds it to requests; what is no secret is a constant of the handler

    "#]],
    );
    stderr_of(
        &files,
        &["call", "returns-bare-data"],
        expect![[r#"
        error: the handler's answer is malformed: `ok` is missing or not a boolean
         --> tools/returns-bare-data/handler.js:1:23
          |
        1 | export async function execute({ args, context }) {
          |                       ^
          |
          = help: end `execute` with `return { ok: true, data: … };`; it returned an object with `temperature`

    "#]],
    );
    stderr_of(
        &files,
        &["call", "exports-the-old-way"],
        expect![[r#"
        error: ReferenceError: module is not defined
         --> tools/exports-the-old-way/handler.js:2:3
          |
        2 |   module.exports = { execute };
          |   ^
          |
          = note: at execute (tools/exports-the-old-way/handler.js:2:3)
          = help: this is CommonJS, and handlers are ES modules: write `export async function execute({ args, context }) { … }`

    "#]],
    );
    stderr_of(
        &files,
        &["call", "lacks-capability"],
        expect![[r#"
        error: CapabilityError: add "capabilities": ["kb"] to schema.json to use this
         --> tools/lacks-capability/handler.js:2:33
          |
        2 |   const hits = await context.kb.search({ query: 'ice' });
          |                                 ^
          |
          = note: at execute (tools/lacks-capability/handler.js:2:33)
          = help: write "capabilities": ["store", "kb"] in lacks-capability/schema.json

    "#]],
    );
    stderr_of(
        &files,
        &["call", "lacks-host"],
        expect![[r#"
        error: CapabilityError: add "network": ["api.example.com"] to schema.json to use this
         --> tools/lacks-host/handler.js:2:22
          |
        2 |   const page = await fetch('https://api.example.com/ice');
          |                      ^
          |
          = note: at execute (tools/lacks-host/handler.js:2:22)
          = help: write "network": ["api.example.com"] in lacks-host/schema.json

    "#]],
    );
    for (name, _) in MISTAKES {
        let envelope = stdout_json(&quarterdeck(files.path(), &["call", name])).to_string();
        assert!(!envelope.contains("handler.js") && !envelope.contains("is not defined"), "{envelope}");
    }
}

#[test]
fn test_prints_the_same_under_the_example_that_failed() {
    check(
        with_mistakes().path(),
        &["test"],
        expect![[r#"
        exit 1
        --- stdout
        FAIL  exports_the_old_way  example 1 of the guide
              the call failed: INTERNAL: exports_the_old_way failed because of a fault inside it.
              error: ReferenceError: module is not defined
               --> tools/exports-the-old-way/handler.js:2:3
                |
              2 |   module.exports = { execute };
                |   ^
                |
                = note: at execute (tools/exports-the-old-way/handler.js:2:3)
                = help: this is CommonJS, and handlers are ES modules: write `export async function execute({ args, context }) { … }`
        FAIL  lacks_capability  example 1 of the guide
              the call failed: PERMANENT: add "capabilities": ["kb"] to schema.json to use this
              error: CapabilityError: add "capabilities": ["kb"] to schema.json to use this
               --> tools/lacks-capability/handler.js:2:33
                |
              2 |   const hits = await context.kb.search({ query: 'ice' });
                |                                 ^
                |
                = note: at execute (tools/lacks-capability/handler.js:2:33)
                = help: write "capabilities": ["store", "kb"] in lacks-capability/schema.json
        FAIL  lacks_host  example 1 of the guide
              the call failed: PERMANENT: add "network": ["api.example.com"] to schema.json to use this
              error: CapabilityError: add "network": ["api.example.com"] to schema.json to use this
               --> tools/lacks-host/handler.js:2:22
                |
              2 |   const page = await fetch('https://api.example.com/ice');
                |                      ^
                |
                = note: at execute (tools/lacks-host/handler.js:2:22)
                = help: write "network": ["api.example.com"] in lacks-host/schema.json
        FAIL  reads_environment  example 1 of the guide
              the call failed: INTERNAL: reads_environment failed because of a fault inside it.
              error: ReferenceError: process is not defined
               --> tools/reads-environment/handler.js:2:15
                |
              2 |   const key = process.env.API_KEY;
                |               ^
                |
                = note: at execute (tools/reads-environment/handler.js:2:15)
                = help: handlers have no process and no environment: declare a key under `secrets` in reads-environment/schema.json, and the server adds it to requests; what is no secret is a constant of the handler
        FAIL  returns_bare_data  example 1 of the guide
              the call failed: INTERNAL: returns_bare_data failed because of a fault inside it.
              error: the handler's answer is malformed: `ok` is missing or not a boolean
               --> tools/returns-bare-data/handler.js:1:23
                |
              1 | export async function execute({ args, context }) {
                |                       ^
                |
                = help: end `execute` with `return { ok: true, data: … };`; it returned an object with `temperature`
        FAIL  uses_require  example 1 of the guide
              the call failed: INTERNAL: uses_require failed because of a fault inside it.
              error: ReferenceError: require is not defined
               --> tools/uses-require/handler.js:2:24
                |
              2 |   const { readFile } = require('fs');
                |                        ^
                |
                = note: at execute (tools/uses-require/handler.js:2:24)
                = help: handlers are ES modules without packages and files: `import` from "quarterdeck" or from a file of this folder, such as "./parse.js"; `fetch`, `URL` and `crypto` are there without an import
        0 passed, 6 failed
        --- stderr
    "#]],
    );
    let report =
        stdout_json(&quarterdeck(with_mistakes().path(), &["test", "uses-require", "--format", "json"]));
    assert_eq!(
        report["cases"][0]["fault"]["message"], "ReferenceError: require is not defined",
        "{report:#}"
    );
    assert_eq!(report["cases"][0]["fault"]["excerpt"]["line"], 2, "{report:#}");
}

#[test]
fn the_playground_has_the_same_beside_an_envelope_without_it() {
    let files = with_mistakes();
    let folder = files.join("tools").display().to_string();
    let server = Server::start(&files.join("data"), &["--tools", &folder]);
    let mut seen = String::new();
    for (name, _) in MISTAKES {
        let body = json!({ "tool": name.replace('-', "_") }).to_string();
        let json = "content-type: application/json\r\n";
        let (status, _, answer) = server.ask("POST", "/api/deck/playground", json, &body);
        assert_eq!(status, 200, "{answer}");
        let played: Value = serde_json::from_str(&answer).unwrap();
        let fault = &played["fault"];
        let places = fault["frames"].as_array().unwrap().iter().map(|frame| {
            format!(
                "  at {} ({}:{})\n",
                frame["function"].as_str().unwrap(),
                frame["file"].as_str().unwrap(),
                frame["line"]
            )
        });
        let places: String = places.collect();
        seen.push_str(&format!("{}\n{places}", fault["message"].as_str().unwrap()));
        seen.push_str(&format!("  | {}\n", fault["excerpt"]["text"].as_str().unwrap().trim()));
        seen.push_str(&format!("  hint: {}\n", fault["hint"].as_str().unwrap()));
        let envelope = played["response"].to_string();
        assert!(!envelope.contains("handler.js") && !envelope.contains("is not defined"), "{envelope}");
    }
    expect![[r#"
        ReferenceError: require is not defined
          at execute (uses-require/handler.js:2)
          | const { readFile } = require('fs');
          hint: handlers are ES modules without packages and files: `import` from "quarterdeck" or from a file of this folder, such as "./parse.js"; `fetch`, `URL` and `crypto` are there without an import
        ReferenceError: process is not defined
          at execute (reads-environment/handler.js:2)
          | const key = process.env.API_KEY;
          hint: handlers have no process and no environment: declare a key under `secrets` in reads-environment/schema.json, and the server adds it to requests; what is no secret is a constant of the handler
        the handler's answer is malformed: `ok` is missing or not a boolean
          | export async function execute({ args, context }) {
          hint: end `execute` with `return { ok: true, data: … };`; it returned an object with `temperature`
        ReferenceError: module is not defined
          at execute (exports-the-old-way/handler.js:2)
          | module.exports = { execute };
          hint: this is CommonJS, and handlers are ES modules: write `export async function execute({ args, context }) { … }`
        CapabilityError: add "capabilities": ["kb"] to schema.json to use this
          at execute (lacks-capability/handler.js:2)
          | const hits = await context.kb.search({ query: 'ice' });
          hint: write "capabilities": ["store", "kb"] in lacks-capability/schema.json
        CapabilityError: add "network": ["api.example.com"] to schema.json to use this
          at execute (lacks-host/handler.js:2)
          | const page = await fetch('https://api.example.com/ice');
          hint: write "network": ["api.example.com"] in lacks-host/schema.json
    "#]].assert_eq(&seen);
    // What is kept of the calls is what was kept of them before.
    let (_, audit) = server.get("/api/deck/audit?event=tool_execution");
    assert!(audit.contains("uses_require"), "{audit}");
    assert!(!audit.contains("handler.js") && !audit.contains("is not defined"), "{audit}");
}

#[test]
fn what_a_build_refuses_has_the_same_form() {
    let sources = [
        (
            "common-js",
            "async function execute({ args }) {\n  return { ok: true };\n}\nmodule.exports = { execute };\n",
        ),
        ("default-export", "export default async function execute() {\n  return { ok: true };\n}\n"),
        ("syntax", "export function execute() {\n  return { ok: true;\n}\n"),
        ("unknown-import", "import { ToolEror } from 'quarterdeck';\nexport const execute = () => 1;\n"),
        ("warned", "export function execute() {\n  return require('fs') ?? process.env.HOME;\n}\n"),
    ];
    stderr_of(
        &tools(&sources),
        &["build"],
        expect![[r#"
        error[QD0402 no-execute]: the handler does not export `execute`: `module` exports nothing
         --> tools/common-js/handler.js:4:1
          |
        4 | module.exports = { execute };
          | ^^^^^^
          |
          = help: this is CommonJS, and handlers are ES modules: write `export async function execute({ args, context }) { … }`

        error[QD0402 no-execute]: the handler exports a default and no `execute`: write `export async function execute`
         --> tools/default-export/handler.js:1:1
          |
        1 | export default async function execute() {
          | ^^^^^^
          |
          = help: export an `execute` function, as `tools/README.md` shows

        error[QD0401 handler-syntax]: Unexpected token ';'
         --> tools/syntax/handler.js:2:20
          |
        2 |   return { ok: true;
          |                    ^
          |
          = help: correct the syntax; nothing was run

        error[QD0403 bad-import]: Could not find export 'ToolEror' in module 'quarterdeck'; it has ToolError, ErrorType, IntentType and validateToolResponse
         --> tools/unknown-import/handler.js:1:10
          |
        1 | import { ToolEror } from 'quarterdeck';
          |          ^^^^^^^^
          |
          = help: import from "quarterdeck" or from a file of this folder, such as "./parse.js"

        warning[QD0406 node-only]: handlers have no `require`: this line will throw
         --> tools/warned/handler.js:2:10
          |
        2 |   return require('fs') ?? process.env.HOME;
          |          ^^^^^^^
          |
          = help: `import` from "quarterdeck" or from a file of this folder, such as "./parse.js"; `fetch`, `URL` and `crypto` are there without an import

        warning[QD0406 node-only]: handlers have no `process`: this line will throw
         --> tools/warned/handler.js:2:27
          |
        2 |   return require('fs') ?? process.env.HOME;
          |                           ^^^^^^^
          |
          = help: declare a key under `secrets` in schema.json, and the server adds it to requests; what is no secret is a constant of the handler

    "#]],
    );
    stderr_of(
        &tools(&sources[..1]),
        &["call", "common-js"],
        expect![[r#"
        error[QD0402 no-execute]: the handler does not export `execute`: `module` exports nothing
         --> tools/common-js/handler.js:4:1
          |
        4 | module.exports = { execute };
          | ^^^^^^
          |
          = help: this is CommonJS, and handlers are ES modules: write `export async function execute({ args, context }) { … }`

    "#]],
    );
}

#[test]
fn typescript_is_taken_and_its_mistakes_are_told_with_their_places() {
    let files = tools(&[("typed", "")]);
    std::fs::remove_file(files.join("tools/typed/handler.js")).unwrap();
    files.write("tools/typed/handler.ts", "enum Mode { A }\nexport const execute = (): unknown => Mode.A;");
    stderr_of(
        &files,
        &["build"],
        expect![[r#"
        error[QD0401 handler-syntax]: an enum has a meaning at run time, so it cannot be erased; write `const Name = { First: 'first' } as const` and `type Name = (typeof Name)[keyof typeof Name]`
         --> tools/typed/handler.ts:1:1
          |
        1 | enum Mode { A }
          | ^^^^
          |
          = help: correct the syntax; nothing was run

    "#]],
    );
    files.write(
        "tools/typed/handler.ts",
        "type Answer = { ok: true; data: number };\nexport const execute = async (): Promise<Answer> => ({ ok: true, data: 1 });\n",
    );
    assert!(quarterdeck(files.path(), &["test"]).status.success(), "no build step is needed");
    files.write("tools/typed/handler.js", "export const execute = () => ({ ok: true, data: 1 });");
    assert!(
        quarterdeck(files.path(), &["test"]).status.success(),
        "the source may lie beside what it was compiled to"
    );
}

#[test]
fn one_handler_that_cannot_run_does_not_take_the_others_with_it() {
    let good = "export const execute = () => ({ ok: true, data: 1 });\n";
    let files = tools(&[
        ("good", good),
        ("native", ""),
        ("throws-early", "const fs = require('fs');\nexport const execute = () => fs;\n"),
    ]);
    std::fs::remove_file(files.join("tools/native/handler.js")).unwrap();
    let native =
        "pub async fn execute(args: Args, context: Arc<dyn Context>) -> Result<(), ToolError> { Ok(()) }\n";
    files.write("tools/native/handler.rs", native);
    assert!(
        quarterdeck(files.path(), &["build"]).status.success(),
        "a handler that is not compiled in is a warning"
    );
    assert!(quarterdeck(files.path(), &["call", "good"]).status.success());
    stderr_of(
        &files,
        &["call", "throws-early"],
        expect![[r#"
        warning: native is left out: the handler cannot be loaded: its handler.rs is not compiled into this binary; run `cargo build` and use the new binary
        warning: throws_early is left out, because its handler cannot be loaded:
        error: ReferenceError: require is not defined
         --> tools/throws-early/handler.js:1:12
          |
        1 | const fs = require('fs');
          |            ^
          |
          = note: at tools/throws-early/handler.js:1:12
          = help: handlers are ES modules without packages and files: `import` from "quarterdeck" or from a file of this folder, such as "./parse.js"; `fetch`, `URL` and `crypto` are there without an import

    "#]],
    );
    check(
        files.path(),
        &["test"],
        expect![[r#"
        exit 1
        --- stdout
        FAIL  native  the handler
              the handler cannot be loaded: its handler.rs is not compiled into this binary; run `cargo build` and use the new binary
        FAIL  throws_early  the handler
              the handler cannot be loaded
              error: ReferenceError: require is not defined
               --> tools/throws-early/handler.js:1:12
                |
              1 | const fs = require('fs');
                |            ^
                |
                = note: at tools/throws-early/handler.js:1:12
                = help: handlers are ES modules without packages and files: `import` from "quarterdeck" or from a file of this folder, such as "./parse.js"; `fetch`, `URL` and `crypto` are there without an import
        pass  good  example 1 of the guide
        1 passed, 2 failed
        --- stderr
    "#]],
    );

    let folder = files.join("tools").display().to_string();
    let server = Server::start(&files.join("data"), &["--tools", &folder]);
    let (_, registry) = server.get("/api/deck/registry");
    let registry: Value = serde_json::from_str(&registry).unwrap();
    let served: Vec<_> =
        registry["tools"].as_array().unwrap().iter().map(|tool| tool["id"].clone()).collect();
    assert_eq!(served, [json!("good")]);
}

#[test]
fn an_example_that_fails_says_so_or_fails_the_test() {
    let missing = "import { ToolError } from 'quarterdeck';\nexport function execute({ args }) {\n  throw new ToolError('NOT_FOUND', 'There is none.');\n}\n";
    let files = tools(&[("looks", missing)]);
    check(
        files.path(),
        &["test"],
        expect![[r#"
        exit 1
        --- stdout
        FAIL  looks  example 1 of the guide
              the call failed: NOT_FOUND: There is none.
              help: give it what it needs with a case of the same `args` and a `given`; if the error is what it shows, write "exampleErrors": ["NOT_FOUND"] in schema.json, or show the error below the example as its answer
        0 passed, 1 failed
        --- stderr
    "#]],
    );
    let guide = std::fs::read_to_string(files.join("tools/looks/guide.md")).unwrap();
    let passes = |why: &str| {
        let output = quarterdeck(files.path(), &["test"]);
        assert!(output.status.success(), "{why}: {}", String::from_utf8_lossy(&output.stdout));
    };

    let shown = "\nResponse:\n\n```json\n{ \"ok\": false, \"error\": { \"type\": \"NOT_FOUND\" } }\n```\n";
    files.write("tools/looks/guide.md", format!("{guide}{shown}"));
    passes("the guide shows the error");
    files.write("tools/looks/guide.md", guide);

    let case =
        json!({ "name": "none", "args": {}, "expect": { "ok": false, "error": { "type": "NOT_FOUND" } } });
    files.write("tools/looks/none.case.json", case.to_string());
    passes("a case of the same arguments expects it");
    std::fs::remove_file(files.join("tools/looks/none.case.json")).unwrap();

    let path = files.join("tools/looks/schema.json");
    let mut schema: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    schema["exampleErrors"] = json!(["CONFLICT"]);
    files.write("tools/looks/schema.json", schema.to_string());
    assert_eq!(quarterdeck(files.path(), &["test"]).status.code(), Some(1), "another error");
    schema["exampleErrors"] = json!(["NOT_FOUND", "INTERNAL"]);
    files.write("tools/looks/schema.json", schema.to_string());
    passes("the definition names it");
    files.write("tools/looks/handler.js", "export function execute() { throw new Error('broken'); }");
    assert_eq!(
        quarterdeck(files.path(), &["test"]).status.code(),
        Some(1),
        "what breaks is never an example"
    );
    schema["exampleErrors"] = json!(["MISSING"]);
    files.write("tools/looks/schema.json", schema.to_string());
    assert_eq!(quarterdeck(files.path(), &["build"]).status.code(), Some(1), "there is no such error");
}
