//! `call` and `test` through the real pipeline: compiler, registry, hosts, envelope.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use expect_test::expect;
use quarterdeck_testkit::{Tree, tree};
use serde_json::{Value, json};

use crate::terminal::{check, command, quarterdeck, stdout_json};

fn with_scaffold(category: &str) -> Tree {
    let files = tree("");
    assert!(quarterdeck(files.path(), &["new", "word-count", "--category", category]).status.success());
    files
}

fn handler(source: &str) -> Tree {
    let files = with_scaffold("utility");
    files.write("tools/word-count/handler.js", source);
    let path = files.join("tools/word-count/schema.json");
    let mut schema: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    schema.as_object_mut().unwrap().remove("returns");
    fs::write(path, schema.to_string()).unwrap();
    files
}

fn call(files: &Tree, arguments: &[&str]) -> (i32, Value) {
    let output = quarterdeck(files.path(), &[&["call", "word-count"], arguments].concat());
    let mut envelope = stdout_json(&output);
    envelope.as_object_mut().unwrap().remove("meta");
    (output.status.code().unwrap(), envelope)
}

#[test]
fn a_call_prints_the_envelope() {
    let files = with_scaffold("utility");
    assert_eq!(
        call(&files, &[r#"{ "text": "the ice is thin" }"#]),
        (0, json!({ "ok": true, "data": { "count": 4, "unit": "words" } }))
    );
}

#[test]
fn a_call_that_fails_prints_the_envelope_too() {
    let (code, envelope) = call(&with_scaffold("utility"), &[r#"{ "text": "  " }"#]);
    assert_eq!(code, 1);
    assert_eq!(envelope["error"]["type"], "VALIDATION");
    assert_eq!(envelope["error"]["suggestion"], "Ask for the text.");
}

#[test]
fn arguments_come_from_standard_input_too() {
    let files = with_scaffold("utility");
    let mut child = command(files.path())
        .args(["call", "word-count", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(br#"{ "text": "Fram" }"#).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn action_waits_for_confirmation() {
    let files = with_scaffold("action");
    let (code, envelope) = call(&files, &[r#"{ "text": "Fram" }"#]);
    assert_eq!((code, &envelope["error"]["type"]), (1, &json!("CONFIRMATION_REQUIRED")));
    assert_eq!(call(&files, &[r#"{ "text": "Fram" }"#, "--confirm"]).0, 0);
}

#[test]
fn what_cannot_be_called_is_told() {
    let files = with_scaffold("utility");
    check(
        files.path(),
        &["call", "word-cuont"],
        expect![[r#"
        exit 2
        --- stdout
        --- stderr
        error: there is no tool word-cuont; did you mean word_count?
    "#]],
    );
    check(
        files.path(),
        &["call", "word-count", "{ \"text\": \"a\", \"text\": \"b\" }"],
        expect![[r#"
        exit 2
        --- stdout
        --- stderr
        error: the arguments are not a JSON object: the key "text" stands twice at line 1 column 28
    "#]],
    );
    check(
        files.path(),
        &["call", "word-count", "text"],
        expect![[r#"
        exit 2
        --- stdout
        --- stderr
        error: the arguments are not a JSON object: expected ident at line 1 column 2
    "#]],
    );
}

#[test]
fn handler_logs_and_messages_are_printed() {
    let files = handler(
        "export async function execute({ context }) {
           console.log('counting', { n: 1 });
           context.progress('nearly there');
           context.audit.log('counted', { n: 1 });
           return { ok: true };
         }",
    );
    let output = quarterdeck(files.path(), &["call", "word-count", r#"{ "text": "Fram" }"#]);
    let printed = String::from_utf8(output.stderr).unwrap();
    for part in ["counting", "progress: nearly there", "audit counted: {\"n\":1}"] {
        assert!(printed.contains(part), "{printed}");
    }
}

/// Folders written for the JavaScript original of this system.
#[test]
fn older_handlers_run_unchanged() {
    let files = handler(
        "import { ToolError, ErrorType } from '../_core/error-types.js';
         export async function execute({ args, context }) {
           if (args.text === 'busy') throw new ToolError(ErrorType.RATE_LIMIT, 'Slow down.', { retryable: true, retryAfter: 2 });
           if (args.text === 'plain') return { ok: false, error: { type: 'CONFLICT', message: 'Taken.' } };
           return { ok: true, data: { tool: context.tool.id }, intents: [{ type: 'SUPPRESS_AUDIO', value: true }] };
         }",
    );
    assert_eq!(
        call(&files, &[r#"{ "text": "x" }"#]).1,
        json!({ "ok": true, "data": { "tool": "word_count" }, "intents": [{ "type": "SUPPRESS_AUDIO", "value": true }] })
    );
    let busy = call(&files, &[r#"{ "text": "busy" }"#]).1;
    assert_eq!(
        (&busy["error"]["type"], &busy["error"]["retryAfterMs"]),
        (&json!("RATE_LIMIT"), &json!(2000))
    );
    let plain = call(&files, &[r#"{ "text": "plain" }"#]).1;
    assert_eq!((&plain["error"]["type"], &plain["error"]["retryable"]), (&json!("CONFLICT"), &json!(false)));
}

#[test]
fn a_handler_that_never_ends_is_answered_at_its_deadline() {
    let files = handler("export function execute() { while (true) {} }");
    let (code, envelope) = call(&files, &[r#"{ "text": "x" }"#]);
    assert_eq!(code, 1);
    assert_eq!(envelope["error"]["type"], "TRANSIENT");
    assert_eq!(envelope["error"]["details"], json!({ "reason": "deadline", "computing": true }));
}

#[test]
fn every_case_of_the_built_in_tools_holds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = quarterdeck(&root, &["test"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.trim_end().ends_with(" passed, 0 failed"), "{text}");
}

#[test]
fn a_case_that_fails_shows_the_difference() {
    let files = with_scaffold("utility");
    files.write(
        "tools/word-count/more.case.json",
        json!([
            { "name": "counts wrongly", "args": { "text": "a b" }, "expect": { "data": { "count": 3 } } },
            { "name": "is not exact", "args": { "text": "a b" }, "exact": true, "expect": { "data": { "count": 2 } } },
            { "name": "several", "calls": [
                { "args": { "text": "a" }, "expect": { "ok": true } },
                { "args": { "text": "a" }, "newTurn": true, "expect": { "ok": false } },
            ] },
            { "name": "in voice", "mode": "voice", "args": { "text": "a" }, "expect": { "ok": true } },
            { "name": "has no call" },
        ])
        .to_string(),
    );
    files.write("tools/word-count/slip.case.json", "{ \"nmae\": 1 }");
    check(
        files.path(),
        &["test", "word-count"],
        expect![[r#"
        exit 1
        --- stdout
        pass  word_count  example 1 of the guide
        pass  word_count  example 2 of the guide
        pass  word_count  counts words unless told otherwise
        pass  word_count  refuses a unit it does not know
        pass  word_count  refuses a text without words
        FAIL  word_count  counts wrongly
              data: count: expected 3, found 2
        FAIL  word_count  is not exact
              data is exactly {"count":2,"unit":"words"}
        FAIL  word_count  several
              call 2: ok: expected false, found true
        pass  word_count  in voice
        FAIL  word_count  has no call
              a case has `args` and `expect`, or `calls`
        FAIL  word_count  slip.case.json
              is not a case file: unknown field `nmae`, expected one of `name`, `mode`, `now`, `given`, `said`, `calls`, `args`, `expect`, `exact`, `confirm`
        6 passed, 5 failed
        --- stderr
    "#]],
    );
    let output = quarterdeck(files.path(), &["test", "--format", "json"]);
    let report = stdout_json(&output);
    assert_eq!((&report["passed"], &report["failed"]), (&json!(6), &json!(5)));
    assert_eq!(report["cases"].as_array().unwrap().len(), 11);
}

/// A scaffold that asks unless the user has asked for it, and never about texts without a sensitive topic.
fn with_policy() -> Tree {
    let files = with_scaffold("action");
    let path = files.join("tools/word-count/schema.json");
    let mut schema: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    schema["requiresConfirmation"] = json!("policy");
    schema["confirmWhen"] = json!({ "notRequestedThisTurn": true, "topics": "legal" });
    schema["requestedBy"] = json!({ "en": ["count *"] });
    fs::write(path, schema.to_string()).unwrap();
    files.write("quarterdeck.toml", "[topics]\nlegal = ['lawsuit']\n");
    files
}

#[test]
fn a_policy_is_tried_with_the_users_words_and_the_configured_topics() {
    let files = with_policy();
    let ask = |arguments: &[&str]| {
        let output = quarterdeck(files.path(), &[&["call", "word-count", "--explain"], arguments].concat());
        let asked = String::from_utf8(output.stderr.clone()).unwrap();
        (stdout_json(&output)["error"]["type"].clone(), asked)
    };
    let (error, told) = ask(&[r#"{ "text": "Fram" }"#]);
    assert_eq!(error, "CONFIRMATION_REQUIRED");
    assert!(told.contains("\nYou did not ask for this just now.\n"), "{told}");
    assert!(told.contains("needs the user's approval: {\"notRequestedThisTurn\":true}"), "{told}");
    let (error, told) = ask(&[r#"{ "text": "Fram" }"#, "--said", "Count the words, please."]);
    assert_eq!(error, json!(null));
    assert!(told.contains("confirmation passed: {\"requestedBy\":\"count *\"}"), "{told}");
    let (error, told) = ask(&[r#"{ "text": "A Lawsuit" }"#, "--said", "Count the words, please."]);
    assert_eq!(error, "CONFIRMATION_REQUIRED");
    assert!(told.contains("It touches on “lawsuit”."), "{told}");
}

#[test]
fn a_case_says_what_the_user_has_said() {
    let files = with_policy();
    let asked = json!({ "ok": false, "error": { "type": "CONFIRMATION_REQUIRED" } });
    let mut schema: Value =
        serde_json::from_str(&fs::read_to_string(files.join("tools/word-count/schema.json")).unwrap())
            .unwrap();
    schema["confirmWhen"] = json!({ "notRequestedThisTurn": true });
    files.write("tools/word-count/schema.json", schema.to_string());
    let cases = json!([
        { "name": "asks", "args": { "text": "Fram" }, "expect": asked },
        { "name": "runs", "said": "Count the words", "args": { "text": "Fram" }, "expect": { "ok": true } },
        { "name": "each turn for itself", "calls": [
            { "said": "Count it", "args": { "text": "Fram" }, "expect": { "ok": true } },
            { "newTurn": true, "args": { "text": "Gjøa" }, "expect": asked },
            { "newTurn": true, "said": "Count again", "args": { "text": "Maud" }, "expect": { "ok": true } },
        ] },
    ]);
    for old in fs::read_dir(files.join("tools/word-count")).unwrap() {
        let path = old.unwrap().path();
        if path.to_string_lossy().ends_with(".case.json") {
            fs::remove_file(path).unwrap();
        }
    }
    files.write("tools/word-count/policy.case.json", cases.to_string());
    let output = quarterdeck(files.path(), &["test"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
