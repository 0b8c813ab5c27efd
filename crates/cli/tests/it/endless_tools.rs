//! A tool whose calls do not end, in a server as an operator runs it.

use std::time::{Duration, Instant};

use quarterdeck_testkit::{Tree, tree};
use serde_json::{Value, json};

use crate::serve::{self, ANYWHERE, Server};
use crate::terminal::{self, quarterdeck, stdout_json};

/// Minutes within one native function of the engine.
const STICKY: &str = "'a'.repeat(800_000).indexOf('a'.repeat(400_000) + 'b')";

/// A folder with a tool that never ends and one that does.
fn tools() -> Tree {
    let files = tree("");
    for (name, body) in [("sticky", STICKY), ("ordinary", "0")] {
        assert!(quarterdeck(files.path(), &["new", name]).status.success());
        let folder = format!("tools/{name}");
        let path = files.join(&format!("{folder}/schema.json"));
        let mut schema: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        schema["timeoutMs"] = json!(300);
        schema["latencyBudgetMs"] = json!(100);
        schema.as_object_mut().unwrap().remove("returns");
        files.write(&format!("{folder}/schema.json"), schema.to_string());
        let handler = format!("export function execute() {{ {body}; return {{ ok: true, data: {{}} }}; }}");
        files.write(&format!("{folder}/handler.js"), handler);
    }
    files
}

/// Makes a call as the deck's playground does, and gives the envelope.
fn call(server: &Server, tool: &str) -> Value {
    let body = json!({ "tool": tool, "args": { "text": "ice" } }).to_string();
    let (status, _, answer) =
        server.ask("POST", "/api/deck/playground", "content-type: application/json\r\n", &body);
    assert_eq!(status, 200, "{answer}");
    serde_json::from_str::<Value>(&answer).unwrap()["response"].clone()
}

fn get(server: &Server, path: &str) -> Value {
    let (status, body) = server.get(path);
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).unwrap()
}

#[test]
fn a_tool_that_never_ends_is_taken_out_of_service_told_counted_and_put_back_by_an_operator() {
    let files = tools();
    let folder = files.join("tools").display().to_string();
    let server = Server::start(&files.join("data"), &["--tools", &folder]);
    let address = server.address.to_string();
    let cli = |words: &[&str]| quarterdeck(files.path(), &[words, &["--server", &address]].concat());
    let printed = |output: &std::process::Output| String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(printed(&cli(&["quarantines"])).contains("no tool is quarantined"));
    assert_eq!(call(&server, "sticky")["error"]["type"], "TRANSIENT");

    let start = Instant::now();
    while get(&server, "/metrics")["handlers"]["quarantined"] != 1 {
        assert!(start.elapsed() < Duration::from_secs(30), "it is taken out of service");
        std::thread::sleep(Duration::from_millis(50));
    }
    let refused = &call(&server, "sticky")["error"];
    assert_eq!(
        (&refused["type"], &refused["retryable"]),
        (&json!("UNAVAILABLE"), &json!(false)),
        "{refused}"
    );
    assert_eq!(refused["partialSideEffects"], false, "{refused}");
    assert!((1..=30_000).contains(&refused["retryAfterMs"].as_u64().unwrap()), "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("sticky is out of service"), "{refused}");
    for _ in 0..50 {
        let answer = call(&server, "ordinary");
        assert_eq!(answer["ok"], true, "another tool is not affected: {answer}");
    }

    let (_, prometheus) = server.get("/metrics?format=prometheus");
    for line in [
        "quarterdeck_handler_quarantined{tool=\"sticky\"} 1",
        "quarterdeck_handler_stuck_threads 1",
        "quarterdeck_handler_quarantines_total 1",
    ] {
        assert!(prometheus.lines().any(|found| found == line), "{line} in {prometheus}");
    }
    let lines = get(&server, "/api/deck/audit?event=handler_quarantined")["lines"].clone();
    assert_eq!((&lines[0]["toolId"], &lines[0]["strikes"]), (&json!("sticky"), &json!(1)), "{lines}");
    assert!(lines[0]["sessionId"].is_string() && lines[0]["callId"].is_string(), "{lines}");

    let listed = stdout_json(&cli(&["quarantines", "list", "--format", "json"]));
    assert_eq!(listed["quarantines"][0]["toolId"], "sticky", "{listed}");
    let output = cli(&["quarantines"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("sticky"), "{output:?}");
    assert!(printed(&cli(&["quarantines", "lift", "sticky"])).contains("sticky is in service again"));
    let again = cli(&["quarantines", "lift", "sticky"]);
    assert_eq!((again.status.code(), printed(&again).contains("is not quarantined")), (Some(1), true));
    let done = get(&server, "/api/deck/audit?event=operator")["lines"].clone();
    assert_eq!((&done[0]["action"], &done[0]["toolId"]), (&json!("lift_quarantine"), &json!("sticky")));
    assert_eq!(get(&server, "/metrics")["handlers"]["quarantined"], 0);
    assert_eq!(call(&server, "sticky")["error"]["type"], "TRANSIENT", "it is called again");
}

#[test]
fn without_a_server_or_its_token_the_command_says_what_to_do() {
    let files = tree("");
    let output = quarterdeck(files.path(), &["quarantines", "--server", "127.0.0.1:9"]);
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(printed.contains("no server answers on 127.0.0.1:9") && printed.contains("help:"), "{printed}");

    const TOKEN: &str = "an-admin-token-of-this-test";
    let serving = &mut serve::command(&files.join("data"), ANYWHERE);
    let server = Server::begin(serving.env("QUARTERDECK_ADMIN_TOKEN", TOKEN));
    let address = server.address.to_string();
    let ask = |token: Option<&str>| {
        let mut command = terminal::command(files.path());
        command.args(["quarantines", "--server", &address]);
        match token {
            Some(token) => command.env("QUARTERDECK_ADMIN_TOKEN", token),
            None => command.env_remove("QUARTERDECK_ADMIN_TOKEN"),
        };
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, printed) = ask(None);
    assert!(code == Some(2) && printed.contains("the server needs its admin token"), "{printed}");
    assert_eq!(ask(Some("an-admin-token-of-another")).0, Some(2));
    let (code, printed) = ask(Some(TOKEN));
    assert!(code == Some(0) && printed.contains("no tool is quarantined"), "{printed}");
}
