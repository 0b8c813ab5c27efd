//! The lines of the log that a request leaves, as an operator gets them.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tracing::Level;
use tracing::subscriber::DefaultGuard;

/// Collects the log of this thread, which is that of the whole server in a test with one thread.
#[derive(Clone, Default)]
pub(crate) struct LogLines(Arc<Mutex<Vec<u8>>>);

impl Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl LogLines {
    /// Collects while the guard is held.
    pub(crate) fn collect(level: Level) -> (Self, DefaultGuard) {
        let lines = Self::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_writer(move || writer.clone())
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .finish();
        (lines, tracing::subscriber::set_default(subscriber))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    pub(crate) fn all(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits for the line of a request to a route.
    pub(crate) async fn request(&self, route: &str) -> Value {
        self.wait_for(|line| line["message"] == "request" && line["route"] == route).await
    }

    pub(crate) async fn wait_for(&self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..500 {
            if let Some(line) = self.all().into_iter().find(|line| is_wanted(line)) {
                return line;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("there is no such line in {}", self.text());
    }
}

/// Takes times from a line and checks them; what is left can be compared.
pub(crate) fn without_times(mut line: Value) -> Value {
    let fields = line.as_object_mut().unwrap();
    fields.remove("timestamp").unwrap();
    let ms = fields.remove("ms").unwrap().as_f64().unwrap();
    let first = fields.remove("first_byte_ms").unwrap().as_f64().unwrap();
    assert!((0.0..=ms).contains(&first) && ms < 60_000.0, "{first} of {ms}");
    assert_eq!(fields.remove("message"), Some(json!("request")));
    assert_eq!(fields.remove("target"), Some(json!("quarterdeck_server::request_log::line")));
    line
}
