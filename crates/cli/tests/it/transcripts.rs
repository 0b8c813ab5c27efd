//! Conversations that operators may read: encrypted in the store, in the audit trail when they are opened, and erased.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::serve::{Server, command as serve_command, say, words};
use crate::terminal::{command, stdout_json};

const KEY: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
const OTHER_KEY: &str = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=";
const PLANTED: &str = "What is the refund policy for a cancelled walrus charter?";

fn with_key<'a>(command: &'a mut Command, key: &str) -> &'a mut Command {
    command.env("QUARTERDECK_TRANSCRIPTS__KEEP", "on").env("QUARTERDECK_TRANSCRIPTS__KEY", key)
}

/// A data folder after a conversation, its session and what was answered.
fn used(key: Option<&str>) -> (TempDir, String, String) {
    let data = tempfile::tempdir().unwrap();
    let mut serving = serve_command(data.path(), "127.0.0.1:0");
    if let Some(key) = key {
        with_key(&mut serving, key);
    }
    let server = Server::begin(&mut serving);
    let (cookie, answer) = say(&server, "", json!({ "message": PLANTED }));
    let session = answer[0]["messageMetadata"]["sessionId"].as_str().unwrap().to_owned();
    let message = answer[0]["messageId"].as_str().unwrap().to_owned();
    let rating = json!({ "sessionId": session, "messageId": message, "rating": "down", "comment": "A walrus, please." });
    let headers = format!("content-type: application/json\r\n{cookie}");
    assert_eq!(server.ask("POST", "/api/feedback", &headers, &rating.to_string()).0, 200);
    server.signal("-TERM");
    assert_eq!(server.ended().0, Some(0));
    (data, session, words(&answer))
}

fn transcripts(data: &Path, key: &str, arguments: &[&str]) -> Output {
    let mut command = command(data);
    with_key(&mut command, key).arg("transcripts").args(arguments).args(["--data", "."]).output().unwrap()
}

fn holds(file: &Path, words: &str) -> bool {
    let bytes = fs::read(file).unwrap_or_default();
    bytes.windows(words.len()).any(|window| window == words.as_bytes())
}

/// Whether a file of the store holds these words: the database, its log, and what SQLite keeps beside them.
fn store_holds(data: &Path, words: &str) -> bool {
    let files = fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path());
    let files =
        files.filter(|file| file.file_name().unwrap().to_string_lossy().starts_with("quarterdeck.db"));
    let files: Vec<_> = files.collect();
    assert!(!files.is_empty(), "there is a store");
    files.iter().any(|file| holds(file, words))
}

fn actions(data: &Path, action: &str) -> Vec<Value> {
    let trail = fs::read_to_string(data.join("audit.jsonl")).unwrap();
    let lines = trail.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["action"] == action).collect()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn kept_conversations_are_ciphertext_on_disk_and_each_showing_is_one_audit_line() {
    let (data, session, answer) = used(Some(KEY));
    for words in [PLANTED, "walrus charter", "A walrus, please.", &answer[..answer.len().min(20)]] {
        assert!(!store_holds(data.path(), words), "the store holds {words:?}");
    }
    assert!(store_holds(data.path(), &session), "the files were looked at");
    for shown in 1..=2 {
        let output = transcripts(data.path(), KEY, &["show", &session, "--format", "json"]);
        let turn = &stdout_json(&output)["turns"][0];
        assert_eq!(
            (&turn["user"], &turn["feedback"]["comment"]),
            (&json!(PLANTED), &json!("A walrus, please."))
        );
        let lines = actions(data.path(), "open_conversation");
        assert_eq!(lines.len(), shown);
        assert_eq!(lines[0]["sessionId"], json!(session));
        assert!(lines[0]["by"].is_string() && lines[0]["time"].is_string(), "{}", lines[0]);
    }
    let plain = transcripts(data.path(), KEY, &["show", &session]);
    let text = String::from_utf8(plain.stdout).unwrap();
    assert!(text.contains(&format!("user: {PLANTED}")) && text.contains("rated down"), "{text}");
    let listed = transcripts(data.path(), KEY, &["list", "--format", "json"]);
    assert!(!String::from_utf8_lossy(&listed.stdout).contains("walrus"), "a list shows no words");
    assert_eq!(stdout_json(&listed)["conversations"][0]["sessionId"], json!(session));
}

#[test]
fn a_wrong_or_missing_key_is_refused_with_a_sentence() {
    let (data, session, _) = used(Some(KEY));
    let wrong = transcripts(data.path(), OTHER_KEY, &["show", &session]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("are encrypted with the key"), "{}", stderr(&wrong));
    assert!(wrong.stdout.is_empty());
    assert_eq!(actions(data.path(), "open_conversation"), Vec::<Value>::new(), "nothing was opened");
    let mut serving = serve_command(data.path(), "127.0.0.1:0");
    let refused = with_key(&mut serving, OTHER_KEY).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("QUARTERDECK_TRANSCRIPTS__PREVIOUS_KEYS"), "{}", stderr(&refused));
    let without = serve_command(data.path(), "127.0.0.1:0").output().unwrap();
    assert!(stderr(&without).contains("no key is configured"), "{}", stderr(&without));
    let mut serving = serve_command(data.path(), "127.0.0.1:0");
    let no_key = serving.env("QUARTERDECK_TRANSCRIPTS__KEEP", "on").output().unwrap();
    assert_eq!(no_key.status.code(), Some(1));
    assert!(stderr(&no_key).contains("openssl rand -base64 32"), "{}", stderr(&no_key));
    let mut serving = serve_command(data.path(), "127.0.0.1:0");
    let no_key = with_key(&mut serving, "secret-but-short").output().unwrap();
    assert!(stderr(&no_key).contains("`transcripts.key` is no key"), "{}", stderr(&no_key));
    assert!(!stderr(&no_key).contains("secret-but-short"), "a key is never printed");
    let mut serving = serve_command(data.path(), "127.0.0.1:0");
    let rotated = with_key(&mut serving, OTHER_KEY).env("QUARTERDECK_TRANSCRIPTS__PREVIOUS_KEYS", KEY);
    let server = Server::begin(rotated);
    let (status, shown) = server.get(&format!("/api/deck/conversations/{session}"));
    assert!(status == 200 && shown.contains(PLANTED), "{status} {shown}");
}

#[test]
fn nothing_is_kept_for_operators_by_default() {
    let (data, session, _) = used(None);
    let refused =
        command(data.path()).args(["transcripts", "show", &session, "--data", "."]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("keep = \"on\""), "{}", stderr(&refused));
    let later = transcripts(data.path(), KEY, &["list", "--format", "json"]);
    assert_eq!(stdout_json(&later)["conversations"], json!([]), "nothing was kept while it was off");
}

#[test]
fn erasing_a_client_needs_no_key_and_leaves_none_of_its_words() {
    let (data, session, _) = used(Some(KEY));
    let listed = stdout_json(&transcripts(data.path(), KEY, &["list", "--format", "json"]));
    let client = listed["conversations"][0]["clientId"].as_str().unwrap().to_owned();
    let erased =
        command(data.path()).args(["clients", "erase", &client, "--yes", "--data", "."]).output().unwrap();
    assert!(erased.status.success(), "{}", stderr(&erased));
    let gone = transcripts(data.path(), KEY, &["show", &session]);
    assert_eq!(gone.status.code(), Some(1), "{}", stderr(&gone));
    let left = stdout_json(&transcripts(data.path(), KEY, &["list", "--format", "json"]));
    assert_eq!(left["conversations"], json!([]));
    assert_eq!(
        stdout_json(&transcripts(data.path(), KEY, &["unanswered", "--format", "json"]))["questions"],
        json!([])
    );
    for words in [PLANTED, "walrus"] {
        assert!(!store_holds(data.path(), words));
    }
}

#[test]
fn unanswered_questions_become_records_that_import_and_cases_that_run() {
    let (data, ..) = used(Some(KEY));
    let unanswered = stdout_json(&transcripts(data.path(), KEY, &["unanswered", "--format", "json"]));
    assert_eq!(unanswered["questions"][0]["question"], json!(PLANTED));
    let export = |form: &str, out: &str| {
        let output = transcripts(data.path(), KEY, &["export", "--form", form, "--out", out]);
        assert!(output.status.success(), "{}", stderr(&output));
    };
    export("records", "unanswered.jsonl");
    let kb = data.path().join("kb");
    let imported =
        command(data.path()).args(["kb", "import", "unanswered.jsonl", "--kb"]).arg(&kb).output().unwrap();
    assert!(imported.status.success(), "{}", stderr(&imported));
    let records = fs::read_to_string(kb.join("imported.jsonl")).unwrap();
    assert!(records.contains("refund policy"), "{records}");
    // The cases run where the tool is.
    let tool = data.path().join("tools/kb-search");
    fs::create_dir_all(&tool).unwrap();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/kb-search");
    for file in fs::read_dir(shipped).unwrap().map(|entry| entry.unwrap().path()) {
        let name = file.file_name().unwrap();
        if !name.to_string_lossy().ends_with(".case.json") {
            fs::copy(&file, tool.join(name)).unwrap();
        }
    }
    export("cases", "tools/kb-search/unanswered.case.json");
    let tested = command(data.path()).args(["test", "--tools", "tools"]).output().unwrap();
    let printed = String::from_utf8_lossy(&tested.stdout);
    assert!(tested.status.success(), "{printed}{}", stderr(&tested));
    // The example in the tool's guide, and the exported case.
    assert!(printed.contains("2 passed, 0 failed"), "{printed}");
    assert_eq!(actions(data.path(), "export_unanswered").len(), 2);
}
