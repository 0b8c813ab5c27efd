//! What a user approves, through the running server: all of it, in time, and in the conversation in which it was asked.

mod clock;
mod codes;
mod moderation;
mod records;
mod showing;

use std::path::{Path, PathBuf};

use quarterdeck_contracts::{Scan, Store, Table};
use quarterdeck_store::SqliteStore;
use quarterdeck_testkit::block_on;
use serde_json::{Value, json};

use crate::serve::{ANYWHERE, Server, command};

/// A server whose model says what a script says, and a folder for everything that it keeps.
struct Site {
    folder: tempfile::TempDir,
}

impl Site {
    fn new(script: &Value) -> Self {
        let site = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::write(site.path("script.json"), script.to_string()).unwrap();
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn serve(&self, more: impl FnOnce(&mut std::process::Command)) -> Server {
        let mut command = command(&self.path("data"), ANYWHERE);
        command.arg("--rehearsal-script").arg(self.path("script.json"));
        more(&mut command);
        Server::begin(&mut command)
    }

    /// What the store says of every question. The server must have ended.
    fn questions(&self) -> Vec<Value> {
        let store = SqliteStore::open(self.path("data/quarterdeck.db")).unwrap();
        let rows = block_on(store.scan(Table::Confirmations, Scan::prefix("", 100))).unwrap();
        rows.into_iter().map(|(_, row)| row.value["status"].clone()).collect()
    }
}

/// A booking, as the model asks for it.
fn booking(day: u32) -> Value {
    json!({ "calls": [{ "name": "calendar_create_event", "arguments": {
        "title": "Tea", "start_time": format!("2090-01-{day:02}T10:00:00Z"),
        "end_time": format!("2090-01-{day:02}T11:00:00Z"), "attendees": ["ann@example.com"],
    } }] })
}

/// The answer to a conversation that a chat program tells.
fn complete(server: &Server, key: &str, messages: &Value) -> String {
    let body = json!({ "model": "quarterdeck", "messages": messages });
    let headers = format!("content-type: application/json\r\nauthorization: Bearer {key}\r\n");
    let (status, _, answer) = server.ask("POST", "/v1/chat/completions", &headers, &body.to_string());
    assert_eq!(status, 200, "{answer}");
    let answer: Value = serde_json::from_str(&answer).unwrap();
    answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
}

/// The code that a question is answered with.
fn code(question: &str) -> String {
    let (_, rest) = question.rsplit_once("`approve ").unwrap_or_else(|| panic!("no code: {question}"));
    rest.split('`').next().unwrap().to_owned()
}

/// The lines of the trail about an event. The server must have ended.
fn trail(data: &Path, event: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(data.join("audit.jsonl")).unwrap();
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.retain(|line| line["event"] == event);
    lines
}
