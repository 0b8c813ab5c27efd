//! Three processes: a page here, the server, and the simulator as the command line starts it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use serde_json::json;

use super::page::Page;
use super::provider::as_text;
use super::server::Site;

#[tokio::test(flavor = "multi_thread")]
async fn call_survives_a_disconnect_between_two_processes_without_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.json");
    let turns = json!([
        { "begins": "text", "steps": [{ "say": "Hello." }] },
        { "begins": "text", "containing": "room", "steps": [
            { "call": { "id": "function-call-4711", "name": "book", "args": { "what": "room" } } },
            { "drop": true, "on": 1 },
            { "await": "answers" },
            { "say": "It is booked." },
        ] },
    ]);
    std::fs::write(&file, as_text(&turns)).unwrap();
    let mut simulator = Command::new(env!("CARGO_BIN_EXE_quarterdeck"))
        .args(["simulate", "live", "--listen", "127.0.0.1:0", "--speech", "tones", "--once", "--scenario"])
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut printed = BufReader::new(simulator.stderr.take().unwrap());
    let mut line = String::new();
    printed.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("simulating Gemini Live on ").unwrap();

    let site = Site::new(address);
    let server = site.serve();
    let mut page = Page::connect(&server).await;
    page.exchange("Good day", "Hello.").await;
    page.send_text("Book the room").await;
    page.wait_for_answer("It is booked.").await;
    page.wait_for("turn_complete").await;
    page.send(&json!({ "type": "stop" })).await;
    let read = page.read_to_end().await;
    assert_eq!(read.last().unwrap()["type"], "session_end", "{read:#?}");
    // The scenario is done and no connection is left, so it ends.
    let status = simulator.wait().unwrap();
    let mut rest = String::new();
    printed.read_to_string(&mut rest).unwrap();
    assert!(status.success() && !rest.contains("fault:"), "{rest}");
    assert!(rest.contains("2 connections: 2 turns, 2 calls"), "{rest}");
    server.stop();
    assert_eq!((site.count_runs("ran", "room"), site.stored_count("book").await), (1, 1));
}
