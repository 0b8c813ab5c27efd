//! Background tasks of JavaScript handlers on the built server.

use std::io::Read;
use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use quarterdeck_testkit::tree;
use serde_json::{Value, json};

use crate::serve::{ANYWHERE, Server, command, say};
use crate::terminal::{self, quarterdeck};

/// A second is the promise; on a busy machine the rest is the scheduler's.
const TIME_TO_STOP: Duration = Duration::from_secs(5);

fn write_tool(tools: &Path, id: &str, more: Value, handler: &str) {
    let folder = tools.join(id.replace('_', "-"));
    std::fs::create_dir_all(&folder).unwrap();
    let mut schema = json!({
        "toolId": id, "version": "1.0.0", "description": format!("Runs {id} for tests."), "category": "utility",
        "sideEffects": "none", "idempotent": true, "requiresConfirmation": false, "allowedModes": ["text"],
        "latencyBudgetMs": 100, "execution": "background",
        "parameters": { "type": "object", "additionalProperties": false, "properties": {} },
    });
    schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    std::fs::write(folder.join("schema.json"), schema.to_string()).unwrap();
    std::fs::write(folder.join("guide.md"), format!("# Run\n\nRuns {id} for tests and nothing else.\n"))
        .unwrap();
    std::fs::write(folder.join("handler.js"), handler).unwrap();
}

/// Starts the task of a tool, and returns its path.
fn start_task(server: &Server, cookie: &str, message: &str) -> (String, String) {
    let (cookie, parts) = say(server, cookie, json!({ "id": "c", "message": message }));
    let output = parts.iter().find(|part| part["type"] == "tool-output-available").unwrap();
    let id = output["output"]["meta"]["backgroundTaskId"].as_str().unwrap();
    (cookie, format!("/api/tasks/{id}"))
}

fn task(server: &Server, cookie: &str, path: &str) -> Value {
    let (status, _, body) = server.ask("GET", path, cookie, "");
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// Waits until a task has said how far it is.
fn wait_for_progress(server: &Server, cookie: &str, path: &str) {
    while task(server, cookie, path)["progress"].is_null() {
        thread::sleep(Duration::from_millis(10));
    }
}

/// Cancels a task, and returns how long it took to stop.
fn cancel(server: &Server, cookie: &str, path: &str) -> Duration {
    let asked = Instant::now();
    assert_eq!(server.ask("DELETE", path, cookie, "").0, 202);
    loop {
        let task = task(server, cookie, path);
        if task["status"] != "running" {
            assert_eq!(
                (&task["status"], &task["response"]["error"]["type"]),
                (&json!("cancelled"), &json!("CANCELLED"))
            );
            return asked.elapsed();
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_cancelled_task_stops_inside_fetch_and_inside_an_endless_loop() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let (hung_up, hears) = mpsc::channel();
    thread::spawn(move || {
        let (mut stream, _) = silent.accept().unwrap();
        // It reads to the end and never answers.
        let _ = stream.read_to_end(&mut Vec::new());
        hung_up.send(()).unwrap();
    });
    let folder = tempfile::tempdir().unwrap();
    let tools = folder.path().join("tools");
    let spin = "export async function execute({ context }) { context.progress('spinning'); for (;;) {} }\n";
    write_tool(&tools, "spin", json!({}), spin);
    let fetch = format!(
        "export async function execute({{ context }}) {{\n  context.progress('asking');\n  \
         return {{ ok: true, data: await (await fetch('http://localhost:{port}/')).text() }};\n}}\n"
    );
    write_tool(&tools, "ask_forever", json!({ "network": ["localhost"] }), &fetch);
    let call = |name: &str| json!({ "calls": [{ "name": name, "arguments": {} }] });
    let script = folder.path().join("script.json");
    let replies =
        [call("spin"), json!({ "text": "It spins." }), call("ask_forever"), json!({ "text": "It asks." })];
    std::fs::write(&script, json!(replies).to_string()).unwrap();
    let config = folder.path().join("quarterdeck.toml");
    std::fs::write(&config, format!("[tools.ask_forever]\nprivate_hosts = [\"localhost:{port}\"]\n"))
        .unwrap();
    let mut command = command(&folder.path().join("data"), ANYWHERE);
    command.args(["--rehearsal-script", script.to_str().unwrap()]);
    command.arg("--tools").arg(&tools).arg("--config").arg(&config);
    let server = Server::begin(&mut command);

    let (cookie, spinning) = start_task(&server, "", "Spin.");
    wait_for_progress(&server, &cookie, &spinning);
    let took = cancel(&server, &cookie, &spinning);
    assert!(took < TIME_TO_STOP, "the loop went on for {took:?}");

    let (cookie, asking) = start_task(&server, &cookie, "Ask.");
    wait_for_progress(&server, &cookie, &asking);
    let took = cancel(&server, &cookie, &asking);
    assert!(took < TIME_TO_STOP, "the request went on for {took:?}");
    hears.recv_timeout(TIME_TO_STOP).expect("the connection is closed");
}

#[test]
fn without_a_server_or_its_token_the_command_says_what_to_do() {
    let files = tree("");
    let output = quarterdeck(files.path(), &["tasks", "--server", "127.0.0.1:9"]);
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(printed.contains("no server answers on 127.0.0.1:9") && printed.contains("help:"), "{printed}");

    const TOKEN: &str = "an-admin-token-of-this-test";
    let serving = &mut command(&files.join("data"), ANYWHERE);
    let server = Server::begin(serving.env("QUARTERDECK_ADMIN_TOKEN", TOKEN));
    let address = server.address.to_string();
    let ask = |token: Option<&str>| {
        let mut command = terminal::command(files.path());
        command.args(["tasks", "--server", &address]);
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
    assert!(code == Some(0) && printed.contains("there are no such tasks"), "{printed}");
}
