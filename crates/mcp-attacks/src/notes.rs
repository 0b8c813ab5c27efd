//! What the server received, kept where a test can read it even after the server was killed.

use std::fs::{File, OpenOptions};
use std::io::Write;

use serde_json::{Value, json};

/// One line per event, appended with one write each.
#[derive(Debug)]
pub(crate) struct Notes(File);

impl Notes {
    pub(crate) fn open(path: &str) -> Self {
        let notes = Self(OpenOptions::new().create(true).append(true).open(path).unwrap());
        notes.write("start", json!({}));
        notes
    }

    pub(crate) fn write(&self, event: &str, what: Value) {
        let line = json!({ "event": event, "pid": std::process::id(), "what": what });
        (&self.0).write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}
