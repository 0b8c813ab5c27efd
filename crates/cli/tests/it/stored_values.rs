//! `quarterdeck store`: operators read what tools have stored.

use std::process::Output;

use serde_json::{Value, json};

use crate::serve::say;
use crate::small_site::Site;
use crate::terminal::{quarterdeck, stdout_json};

fn site() -> Site {
    let site = Site::new();
    let definition = json!({
        "toolId": "remember", "version": "1.0.0", "description": "Remembers a note of the user until it is asked for.",
        "category": "action", "sideEffects": "writes", "idempotent": false, "requiresConfirmation": false,
        "allowedModes": ["text"], "latencyBudgetMs": 500, "capabilities": ["store"], "sensitive": ["/pin"],
        "parameters": {
            "type": "object", "additionalProperties": false, "required": ["note", "pin"],
            "properties": {
                "note": { "type": "string", "maxLength": 200, "description": "What to remember." },
                "pin": { "type": "string", "maxLength": 20, "description": "What protects it." },
            },
        },
    });
    site.files.write("tools/remember/schema.json", definition.to_string());
    site.files
        .write("tools/remember/guide.md", "# Remember\n\nRemembers a note. Use it when the user says so.\n");
    site.files.write(
        "tools/remember/handler.js",
        "export async function execute({ args, context }) {\n  await context.store.put('a/b', { ...args, times: 1 });\n  \
         return { ok: true };\n}\n",
    );
    let call = json!({ "name": "remember", "arguments": { "note": "ice", "pin": "s3cret-4711" } });
    let script = json!([{ "calls": [call] }, { "text": "Done." }]);
    site.files.write("script.json", script.to_string());
    site
}

fn store(site: &Site, arguments: &[&str]) -> Output {
    let data = site.data();
    let arguments = [&["store"], arguments, &["--data", data.to_str().unwrap()]].concat();
    quarterdeck(site.files.path(), &arguments)
}

#[test]
fn an_operator_reads_what_tools_have_stored_and_no_sensitive_argument() {
    let site = site();
    let script = site.files.join("script.json");
    let server = site.start(&["--rehearsal-script", script.to_str().unwrap()]);
    let (_, answer) = say(&server, "", json!({ "message": "Remember the ice" }));
    let session = answer[0]["messageMetadata"]["sessionId"].as_str().unwrap().to_owned();

    let check = |when: &str| {
        let listed = store(&site, &["list", "--json"]);
        assert_eq!(listed.status.code(), Some(0), "{when}: {}", String::from_utf8_lossy(&listed.stderr));
        let listed = stdout_json(&listed);
        assert_eq!(listed["values"].as_array().unwrap().len(), 1, "{when}: {listed}");
        let value = &listed["values"][0];
        assert_eq!((&value["toolId"], &value["key"]), (&json!("remember"), &json!("a/b")));
        assert_eq!(
            value["value"],
            json!({ "note": "ice", "pin": "[hidden]", "times": "[hidden]" }),
            "{when}"
        );
        value["clientId"].as_str().unwrap().to_owned()
    };
    let client = check("while the server runs");
    server.signal("-TERM");
    assert_eq!(server.ended().0, Some(0));
    assert_eq!(check("after it has stopped"), client);

    let count = |arguments: &[&str]| {
        let listed: Value = stdout_json(&store(&site, &[&["list", "--json"], arguments].concat()));
        listed["values"].as_array().unwrap().len()
    };
    assert_eq!(count(&["--session", &session]), 1);
    assert_eq!(count(&["--client", &client, "--tool", "remember"]), 1);
    assert_eq!(count(&["--tool", "word_count"]), 0);
    assert_eq!(count(&["--client", "other"]), 0);
    assert_eq!(count(&["--limit", "0"]), 0);
    let table = store(&site, &["list"]);
    assert!(String::from_utf8_lossy(&table.stdout).contains("a/b"), "{table:?}");

    let got = store(&site, &["get", &client, "remember", "a/b"]);
    assert_eq!(stdout_json(&got)["note"], "ice");
    let got = store(&site, &["get", &client, "remember", "a/b", "--json"]);
    assert_eq!(stdout_json(&got)["key"], "a/b");
    let missing = store(&site, &["get", &client, "remember", "other"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("quarterdeck store list"));
    let unknown = store(&site, &["list", "--session", "ses_none"]);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("quarterdeck sessions"), "{unknown:?}");
}

#[test]
fn where_nothing_was_recorded_nothing_is_created() {
    let site = Site::new();
    let listed = store(&site, &["list"]);
    assert_eq!(listed.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&listed.stderr).contains("--data"), "{listed:?}");
    assert!(!site.data().exists());
}
