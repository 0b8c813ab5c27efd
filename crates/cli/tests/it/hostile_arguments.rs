//! Arguments that are meant to keep the server busy: each call is answered, and no other request has to wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quarterdeck_testkit::{Tree, tree};
use serde_json::{Value, json};

use crate::serve::{Server, say};

/// How long another request may take meanwhile. The attacks took from 46 seconds to for ever.
const MAX_WAIT: Duration = Duration::from_secs(5);

#[test]
fn hostile_arguments_are_answered_and_other_requests_are_not_held_up() {
    let files = tools();
    let script = files.path().join("script.json");
    let attacks = attacks();
    let call = |(arguments, _): &(Value, &str)| json!({ "name": "look_up", "arguments": arguments });
    let messages =
        attacks.chunks(4).map(|some| json!({ "calls": some.iter().map(call).collect::<Vec<_>>() }));
    let script_text: Vec<Value> = messages.chain([json!({ "text": "Done." })]).collect();
    std::fs::write(&script, Value::from(script_text).to_string()).unwrap();
    let tools = files.path().join("tools");
    let server = Server::start(
        &files.path().join("data"),
        &["--tools", tools.to_str().unwrap(), "--rehearsal-script", script.to_str().unwrap()],
    );
    let is_over = AtomicBool::new(false);
    let answers = std::thread::scope(|scope| {
        let others = scope.spawn(|| longest_wait(&server, &is_over));
        let (_, answers) = say(&server, "", json!({ "message": "Go" }));
        is_over.store(true, Ordering::Relaxed);
        let waited = others.join().unwrap();
        assert!(waited < MAX_WAIT, "another request waited for {waited:?}");
        answers
    });
    let outcomes: Vec<String> = answers.iter().filter_map(outcome).collect();
    assert_eq!(outcomes, attacks.iter().map(|(_, expected)| *expected).collect::<Vec<_>>());
}

/// What a call was answered with, and by which gate.
fn outcome(part: &Value) -> Option<String> {
    let gates = part["data"]["gates"].as_array().filter(|_| part["type"] == "data-gates")?;
    let refusing = gates.iter().find(|gate| gate["verdict"] == "refused");
    Some(refusing.map_or("accepted".to_owned(), |gate| {
        format!(
            "{} by {}",
            gate["note"].as_str().unwrap_or_default(),
            gate["gate"].as_str().unwrap_or_default()
        )
    }))
}

/// Asks over and over until it is over, and returns the time of the slowest answer.
fn longest_wait(server: &Server, is_over: &AtomicBool) -> Duration {
    let mut slowest = Duration::ZERO;
    while !is_over.load(Ordering::Relaxed) {
        let start = Instant::now();
        assert_eq!(server.get("/healthz").0, 200);
        slowest = slowest.max(start.elapsed());
        std::thread::sleep(Duration::from_millis(20));
    }
    slowest
}

/// Arguments, and what becomes of them.
fn attacks() -> Vec<(Value, &'static str)> {
    let long = "a".repeat(60_000);
    let deep = |end: Value, wrap: fn(Value) -> Value| (0..30).fold(end, |inner, _| wrap(inner));
    let all = |inner: Value| json!({ "and": [inner.clone(), inner] });
    let wide = |end: Value| (0..9).fold(end, |inner, _| all(inner));
    vec![
        (json!({ "behind": format!("{long}!") }), "VALIDATION by arguments"),
        (json!({ "ahead": format!("{long}!") }), "VALIDATION by arguments"),
        (json!({ "costly": "ab".repeat(60_000) }), "VALIDATION by arguments"),
        (
            json!({ "filter": deep(json!({ "field": 3 }), |inner| json!({ "not": inner })) }),
            "VALIDATION by arguments",
        ),
        (
            json!({ "filter": deep(json!({ "field": 3 }), |inner| json!({ "and": [inner] })) }),
            "VALIDATION by arguments",
        ),
        (json!({ "filter": wide(json!({ "field": 3 })) }), "VALIDATION by arguments"),
        (json!({ "filter": deep(json!({ "field": "x" }), |inner| json!({ "not": inner })) }), "accepted"),
        (json!({ "behind": format!("{long}b") }), "accepted"),
    ]
}

fn tools() -> Tree {
    let files = tree(
        r#"
        //- tools/look-up/guide.md
        # Look up

        Looks things up by a filter. Use it when something is to be found.

        ## Examples

        ```json
        { "filter": { "field": "name" } }
        ```
        //- tools/look-up/handler.js
        export async function execute() {
          return { ok: true, data: "found" };
        }
        "#,
    );
    let branch = |name: &str, inner: Value| json!({ "type": "object", "properties": { name: inner }, "required": [name], "additionalProperties": false });
    let (one, many) = (
        json!({ "$ref": "#/$defs/filter" }),
        json!({ "type": "array", "items": { "$ref": "#/$defs/filter" } }),
    );
    let schema = json!({
        "toolId": "look_up", "version": "1.0.0", "description": "Looks things up by a filter.",
        "category": "utility", "sideEffects": "none", "idempotent": true, "requiresConfirmation": false,
        "allowedModes": ["text"], "latencyBudgetMs": 100,
        "parameters": {
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "behind": { "type": "string", "description": "d", "pattern": "(?<=a+)b" },
                "ahead": { "type": "string", "description": "d", "pattern": "(?=.*a.*b.*c)z" },
                "costly": { "type": "string", "description": "d", "pattern": "(?=x[ab]{0,5000})b" },
                "filter": { "$ref": "#/$defs/filter" }
            },
            "$defs": { "filter": { "anyOf": [
                branch("field", json!({ "type": "string" })),
                branch("and", many.clone()), branch("or", many.clone()), branch("not", one.clone()),
                branch("and", many), branch("not", one)
            ] } }
        }
    });
    files.write("tools/look-up/schema.json", format!("{schema:#}"));
    files
}
