//! A collector in Python, which checks what it gets.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Receiver {
    process: Child,
    port: u64,
    lines: Arc<Mutex<Vec<Value>>>,
}

impl Receiver {
    pub(crate) fn start() -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let program = root.join("target/otlp-receiver/bin/python");
        if !program.exists() {
            let required = std::env::var("QUARTERDECK_REQUIRE_CLIENTS").is_ok_and(|value| value == "1");
            assert!(!required, "a receiver is required here; `scripts/otlp-receiver` installs it");
            #[expect(
                clippy::print_stderr,
                reason = "the reader of the result must know that nothing was tried"
            )]
            {
                eprintln!("SKIPPED: no receiver is installed; `scripts/otlp-receiver` installs it");
            }
            return None;
        }
        let mut process = Command::new(program)
            .arg(root.join("tests/otlp/receiver.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut first = String::new();
        output.read_line(&mut first).unwrap();
        let port = serde_json::from_str::<Value>(&first).unwrap()["port"].as_u64().unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let received = lines.clone();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                received.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        Some(Self { process, port, lines })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What came of a signal, as soon as it is enough.
    pub(crate) fn wait_for(&self, signal: &str, is_enough: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let begun = Instant::now();
        loop {
            let came: Vec<_> =
                self.lines.lock().unwrap().iter().filter(|line| line["signal"] == signal).cloned().collect();
            if is_enough(&came) {
                return came;
            }
            assert!(begun.elapsed() < TIMEOUT, "not enough of {signal} came: {}", self.everything());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub(crate) fn everything(&self) -> String {
        self.lines.lock().unwrap().iter().map(|line| format!("{line}\n")).collect()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Whether every span is as the conventions want it.
pub(crate) fn assert_sound(spans: &[Value]) {
    for span in spans {
        assert_eq!(span["problems"], json!([]), "{span:#}");
    }
}

/// The `traceparent` of a request within this span, which is kept.
pub(crate) fn traceparent(span: &Value) -> String {
    format!("00-{}-{}-01", text(span, "trace"), text(span, "id"))
}

/// Those whose names begin so.
pub(crate) fn of_name<'a>(items: &'a [Value], name: &str) -> Vec<&'a Value> {
    items.iter().filter(|item| text(item, "name").starts_with(name)).collect()
}

pub(crate) fn text<'a>(item: &'a Value, key: &str) -> &'a str {
    item[key].as_str().unwrap_or_default()
}
