//! What a handler's author is told when it fails.

use expect_test::{Expect, expect};
use quarterdeck_contracts::handler::{CapabilityErrorCode, HandlerFault, HostError};
use quarterdeck_testkit::FakeContext;
use serde_json::json;

use crate::world::{AnswerMode, Slow, TEN_SECONDS, host, load_files};

/// The fault of a handler with this body, whose lines begin on the second line of the file.
async fn fault_of(body: &str) -> Option<HandlerFault> {
    let source = format!("export async function execute({{ args, context }}) {{\n{body}\n}}\n");
    let helper = "export function thrower(what) {\n  throw new RangeError(`no ${what}`);\n}\n";
    let files = [("tool/handler.js", source.as_str()), ("tool/lib/helper.js", helper)];
    let host = host();
    let handler = load_files(&host, &files, &["listed.example.com"]).unwrap();
    let context = FakeContext::new();
    let _ = handler.run(json!({}), context.clone(), TEN_SECONDS).await;
    let mut faults = context.recorded().faults;
    assert!(faults.len() <= 1, "{faults:?}");
    faults.pop()
}

fn text(fault: &HandlerFault) -> String {
    let mut text = format!("{fault}\n");
    if let Some(excerpt) = &fault.excerpt {
        let caret = " ".repeat(excerpt.caret as usize);
        text.push_str(&format!("{}:{}\n| {}\n| {caret}^\n", excerpt.file, excerpt.line, excerpt.text));
    }
    if let Some(hint) = &fault.hint {
        text.push_str(&format!("hint: {hint}\n"));
    }
    text
}

async fn check(body: &str, expected: Expect) {
    let fault = fault_of(body).await;
    expected.assert_eq(&fault.as_ref().map_or_else(|| "none\n".to_owned(), text));
}

#[tokio::test]
async fn an_exception_is_told_with_its_stack_in_the_authors_files() {
    check(
        "  const { thrower } = await import('./lib/helper.js');\n  return [1].map(() => thrower('luck'))[0];",
        expect![[r#"
            RangeError: no luck
                at thrower (tool/lib/helper.js:2:30)
                at tool/handler.js:3:24
                at execute (tool/handler.js:3:14)
            tool/lib/helper.js:2
            |   throw new RangeError(`no ${what}`);
            |                              ^
        "#]],
    )
    .await;
    check(
        "  await new Promise((resolve) => setTimeout(resolve, 1));\n  null.luck;",
        expect![[r#"
        TypeError: cannot read property 'luck' of null
            at execute (tool/handler.js:3:3)
        tool/handler.js:3
        |   null.luck;
        |   ^
    "#]],
    )
    .await;
    check(
        "  throw 'a text';",
        expect![[r#"
        a text
    "#]],
    )
    .await;
}

#[tokio::test]
async fn the_five_usual_mistakes_have_a_hint() {
    check("  const fs = require('fs');", expect![[r#"
        ReferenceError: require is not defined
            at execute (tool/handler.js:2:14)
        tool/handler.js:2
        |   const fs = require('fs');
        |              ^
        hint: handlers are ES modules without packages and files: `import` from "quarterdeck" or from a file of this folder, such as "./parse.js"; `fetch`, `URL` and `crypto` are there without an import
    "#]]).await;
    check("  const key = process.env.API_KEY;", expect![[r#"
        ReferenceError: process is not defined
            at execute (tool/handler.js:2:15)
        tool/handler.js:2
        |   const key = process.env.API_KEY;
        |               ^
        hint: handlers have no process and no environment: declare a key under `secrets` in tool/schema.json, and the server adds it to requests; what is no secret is a constant of the handler
    "#]]).await;
    check(
        "  return { temperature: 3 };",
        expect![[r#"
        the handler's answer is malformed: `ok` is missing or not a boolean
        tool/handler.js:1
        | export async function execute({ args, context }) {
        |                       ^
        hint: end `execute` with `return { ok: true, data: … };`; it returned an object with `temperature`
    "#]],
    )
    .await;
    check(
        "  return undefined;",
        expect![[r#"
        the handler's answer is malformed: the answer is not an object
        tool/handler.js:1
        | export async function execute({ args, context }) {
        |                       ^
        hint: end `execute` with `return { ok: true, data: … };`; it returned undefined
    "#]],
    )
    .await;
    check("  return { ok: true, data: 10n };", expect![[r#"
        the answer cannot be written as JSON: TypeError: BigInt are forbidden in JSON.stringify
        tool/handler.js:1
        | export async function execute({ args, context }) {
        |                       ^
        hint: `data` is JSON: numbers, texts, lists and plain objects, no BigInt and nothing that contains itself
    "#]]).await;
    check("  module.exports = { execute };", expect![[r#"
        ReferenceError: module is not defined
            at execute (tool/handler.js:2:3)
        tool/handler.js:2
        |   module.exports = { execute };
        |   ^
        hint: this is CommonJS, and handlers are ES modules: write `export async function execute({ args, context }) { … }`
    "#]]).await;
    check("  const rows = await context.database.query('SELECT 1');", expect![[r#"
        TypeError: cannot read property 'query' of undefined
            at execute (tool/handler.js:2:22)
        tool/handler.js:2
        |   const rows = await context.database.query('SELECT 1');
        |                      ^
        hint: `context` has no `database`; what a handler may use is kb, calendar, images, store, callTool, client, each declared under `capabilities` in tool/schema.json
    "#]]).await;
    check(
        "  const page = await fetch('https://api.example.com/ice');",
        expect![[r#"
        CapabilityError: add "network": ["api.example.com"] to schema.json to use this
            at execute (tool/handler.js:2:22)
        tool/handler.js:2
        |   const page = await fetch('https://api.example.com/ice');
        |                      ^
        hint: write "network": ["listed.example.com", "api.example.com"] in tool/schema.json
    "#]],
    )
    .await;
}

#[tokio::test]
async fn an_uncaught_error_of_a_capability_is_told_where_it_was_asked_for() {
    let source =
        "export async function execute({ context }) {\n  await context.kb.search({ query: 'ice' });\n}\n";
    let host = host();
    let handler = load_files(&host, &[("tool/handler.js", source)], &[]).unwrap();
    let context = Slow::new(AnswerMode::Failing(CapabilityErrorCode::NotAvailable, None));
    let _ = handler.run(json!({}), context.clone(), TEN_SECONDS).await;
    let fault = context.faults().pop().unwrap();
    assert_eq!(fault.excerpt.as_ref().map(|excerpt| excerpt.line), Some(2), "{fault:?}");
    assert_eq!(fault.frames[0].function.as_deref(), Some("execute"));
}

#[tokio::test]
async fn what_a_handler_means_to_answer_is_no_fault() {
    for body in [
        "  return { ok: true, data: 1 };",
        "  return { ok: false, error: { type: 'NOT_FOUND', message: 'none' } };",
        "  throw Object.assign(new Error('none'), { type: 'NOT_FOUND' });",
        "  try { require('fs'); } catch {} return { ok: true, data: 1 };",
        "  try { await fetch('https://api.example.com/'); } catch {} return { ok: true, data: 1 };",
    ] {
        assert_eq!(fault_of(body).await, None, "{body}");
    }
}

#[tokio::test]
async fn a_handler_that_throws_at_its_top_level_is_told_where() {
    let source = "import { ToolError } from 'quarterdeck';\nconst { readFile } = require('fs');\nexport const execute = () => 1;\n";
    let Err(HostError::FailedToLoad(fault)) = load_files(&host(), &[("tool/handler.js", source)], &[]) else {
        panic!("it loads");
    };
    expect![[r#"
        ReferenceError: require is not defined
            at tool/handler.js:2:22
        tool/handler.js:2
        | const { readFile } = require('fs');
        |                      ^
        hint: handlers are ES modules without packages and files: `import` from "quarterdeck" or from a file of this folder, such as "./parse.js"; `fetch`, `URL` and `crypto` are there without an import
    "#]].assert_eq(&text(&fault));
}

#[tokio::test]
async fn a_stack_that_a_handler_makes_up_does_no_harm() {
    for stack in [
        "'    at x (tool/handler.js:99999:1)'",
        "'at tool/handler.js:1:999999999999'",
        "'at ('.repeat(1e6)",
        "'    at /etc/passwd:1:1\\n    at (other/handler.js:1:1)'",
    ] {
        let body = format!("  const error = new Error('x'); error.stack = {stack}; throw error;");
        let fault = fault_of(&body).await.unwrap();
        assert_eq!(fault.message, "Error: x", "{stack}");
        assert!(fault.frames.iter().all(|frame| frame.file == "tool/handler.js"), "{fault:?}");
        assert_eq!(fault.excerpt, None, "{fault:?}");
    }
}
