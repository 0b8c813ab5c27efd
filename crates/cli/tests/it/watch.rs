use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use quarterdeck_testkit::{Tree, tree};
use serde_json::{Value, json};

use crate::terminal::{command, quarterdeck};

struct Watching {
    child: Child,
    lines: Receiver<String>,
}

impl Watching {
    /// Waits for a line; generous, because a busy machine must not fail the test.
    fn wait_for(&self, part: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(Duration::from_secs(30)).expect("the line comes");
            if line.contains(part) {
                return line;
            }
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn build_watch(files: &Tree) -> Watching {
    let mut child = command(files.path())
        .args(["build", "--watch"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (sender, lines) = channel();
    for stream in [
        Box::new(child.stdout.take().unwrap()) as Box<dyn std::io::Read + Send>,
        Box::new(child.stderr.take().unwrap()),
    ] {
        let sender = sender.clone();
        std::thread::spawn(move || {
            BufReader::new(stream).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
    }
    Watching { child, lines }
}

#[test]
fn a_change_builds_again_and_an_error_does_not_end_the_watching() {
    let files = tree("");
    assert!(quarterdeck(files.path(), &["new", "word-count"]).status.success());
    let watching = build_watch(&files);

    // The watching has begun before the first build, so no change from here on is missed.
    let first = watching.wait_for("registry 1.0.");
    files.write("tools/word-count/handler.js", "export const nothing = 1;");
    watching.wait_for("no registry");
    files.write("tools/word-count/handler.js", "export function execute() { return { ok: true }; }");
    let last = watching.wait_for("registry 1.0.");
    assert_ne!(first, last);
}

#[test]
fn build_watch_prints_which_tools_and_fields_have_changed() {
    let files = tree("");
    assert!(quarterdeck(files.path(), &["new", "word-count"]).status.success());
    let watching = build_watch(&files);
    watching.wait_for("registry 1.0.");

    files.write("tools/word-count/handler.js", "export function execute() { return { ok: true }; }");
    watching.wait_for("~ word_count changed");
    watching.wait_for("the handler changed");
    watching.wait_for("registry 1.0.");

    let path = files.path().join("tools/word-count/schema.json");
    let mut schema: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    schema["timeoutMs"] = json!(4321);
    files.write("tools/word-count/schema.json", schema.to_string());
    watching.wait_for("~ word_count changed");
    let detail = watching.wait_for("4321");
    assert!(detail.contains("`timeoutMs`"), "{detail}");
    watching.wait_for("registry 1.0.");

    assert!(quarterdeck(files.path(), &["new", "line-count"]).status.success());
    watching.wait_for("+ line_count added");
    std::fs::remove_dir_all(files.path().join("tools/word-count")).unwrap();
    watching.wait_for("- word_count removed");
}
