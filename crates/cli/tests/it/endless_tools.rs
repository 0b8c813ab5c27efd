//! A tool whose calls do not end by themselves, in a server as an operator runs it.

use std::time::{Duration, Instant};

use quarterdeck_testkit::{Tree, tree};
use serde_json::{Value, json};

use crate::serve::Server;
use crate::terminal::quarterdeck;

/// Minutes within one native function of the engine.
const ENDLESS: &str = "'a'.repeat(800_000).indexOf('a'.repeat(400_000) + 'b')";

/// A folder with a tool that does not end by itself and one that does.
fn tools() -> Tree {
    let files = tree("");
    for (name, body, timeout_ms) in [("endless", ENDLESS, 300), ("ordinary", "0", 10_000)] {
        assert!(quarterdeck(files.path(), &["new", name]).status.success());
        let folder = format!("tools/{name}");
        let path = files.join(&format!("{folder}/schema.json"));
        let mut schema: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        schema["timeoutMs"] = json!(timeout_ms);
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

#[test]
fn an_endless_tool_is_stopped_each_time_and_costs_no_other_tool() {
    const CALLS: usize = 5;
    let files = tools();
    let folder = files.join("tools").display().to_string();
    let server = Server::start(&files.join("data"), &["--tools", &folder]);
    std::thread::scope(|scope| {
        let endless = scope.spawn(|| {
            for _ in 0..CALLS {
                let start = Instant::now();
                let error = &call(&server, "endless")["error"];
                assert_eq!(error["type"], "TRANSIENT", "{error}");
                assert_eq!(error["details"], json!({ "reason": "deadline", "computing": true }), "{error}");
                // Without a limit it takes minutes; a busy machine takes seconds.
                assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
            }
        });
        let mut answers = 0;
        while answers < CALLS || !endless.is_finished() {
            let answer = call(&server, "ordinary");
            assert_eq!(answer["ok"], true, "another tool is not affected: {answer}");
            answers += 1;
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    assert_eq!(call(&server, "ordinary")["ok"], true);
}
