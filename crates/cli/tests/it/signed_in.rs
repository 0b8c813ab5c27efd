//! `call` and case files as a client who has signed in.

use quarterdeck_testkit::{Tree, tree};
use serde_json::{Value, json};

use crate::terminal::{quarterdeck, stdout_json};

/// A tool that needs a claim, and says what it can read.
fn site() -> Tree {
    let files = tree(
        r#"
        //- tools/kb-mine/guide.md
        # Mine

        Lists personal records. Use it when the user asks for their own notes.
        //- tools/kb-mine/handler.js
        export async function execute({ args, context }) {
          const found = await context.kb.search({ query: args.query, namespace: 'personal' });
          return { ok: true, data: { client: context.clientId, titles: found.map((record) => record.title) } };
        }
        //- kb/personal/doc/diary.md
        ---
        id: doc:diary
        type: doc
        title: Diary
        namespace: personal
        ---
        The ice groaned all night.
        "#,
    );
    files.write("tools/kb-mine/schema.json", definition().to_string());
    files
}

fn definition() -> Value {
    json!({
        "toolId": "kb_mine", "version": "1.0.0", "description": "Lists personal records by what they say.",
        "category": "retrieval", "sideEffects": "read_only", "idempotent": true, "requiresConfirmation": false,
        "allowedModes": ["text"], "latencyBudgetMs": 500, "capabilities": ["kb"],
        "availability": { "claims": { "role": ["staff"] } },
        "parameters": { "type": "object", "additionalProperties": false, "required": ["query"],
            "properties": { "query": { "type": "string", "description": "What." } } },
    })
}

fn call(files: &Tree, flags: &[&str]) -> Value {
    let arguments = [&["call", "kb-mine", r#"{ "query": "ice" }"#], flags].concat();
    stdout_json(&quarterdeck(files.path(), &arguments))
}

#[test]
fn a_call_can_be_made_as_a_client_with_claims() {
    let files = site();
    assert_eq!(call(&files, &[])["error"]["type"], "UNAVAILABLE");
    assert_eq!(call(&files, &["--client", "ann"])["error"]["type"], "UNAVAILABLE", "no claim");
    let staff = r#"{ "role": "staff" }"#;
    let named = call(&files, &["--client", "ann", "--claims", staff]);
    assert_eq!(named["data"], json!({ "client": "ann", "titles": ["Diary"] }), "{named}");
    assert_eq!(call(&files, &["--claims", staff])["data"]["titles"], json!(["Diary"]));
    for (flags, message) in [
        (&["--claims", "[1]"], "the claims are not a JSON object"),
        (&["--claims", "{"], "the claims are not a JSON object"),
        (&["--client", ""], "a client's id has 1 to 128 characters"),
    ] {
        let output =
            quarterdeck(files.path(), &[&["call", "kb-mine", r#"{ "query": "ice" }"#], &flags[..]].concat());
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!(printed.contains(message), "{printed}");
    }
}

#[test]
fn a_case_can_be_about_a_client_with_claims() {
    let files = site();
    let records = json!([{ "id": "doc:diary", "type": "doc", "title": "Diary", "namespace": "personal", "text": "The ice groaned." }]);
    let staff = json!({ "kb": records, "client": { "id": "ann", "claims": { "role": "staff" } } });
    let guest = json!({ "kb": records, "client": { "claims": { "role": "guest" } } });
    let reads = json!({ "ok": true, "data": { "client": "ann", "titles": ["Diary"] } });
    let refused = json!({ "ok": false, "error": { "type": "UNAVAILABLE" } });
    let cases = json!([
        { "name": "staff reads", "given": staff, "args": { "query": "ice" }, "expect": reads },
        { "name": "a guest does not", "given": guest, "args": { "query": "ice" }, "expect": refused },
        { "name": "nor does a visitor", "given": { "kb": records }, "args": { "query": "ice" }, "expect": refused },
    ]);
    files.write("tools/kb-mine/mine.case.json", cases.to_string());
    let output = quarterdeck(files.path(), &["test"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.ends_with("3 passed, 0 failed\n"), "{text}");
}
