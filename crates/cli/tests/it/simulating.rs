//! A provider that is simulated, from the command line.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;

use expect_test::expect;
use quarterdeck_testkit::tree;

use crate::terminal::{check, command};

#[test]
fn what_is_no_scenario_is_told_with_its_place() {
    let files = tree("");
    files.write("bad.json", "{ \"turns\": [\n  { \"steps\": [{ \"shout\": \"Hello\" }] }\n] }");
    check(
        files.path(),
        &["simulate", "live", "--scenario", "bad.json"],
        expect![[r#"
            exit 2
            --- stdout
            --- stderr
            error: bad.json is no scenario (docs/SIMULATOR.md says what one is): line 2: turns[0].steps[0]: must have exactly one of say, think, call, await, cancel, interrupt, expectInterruption, goAway, drop, wait, frame, malformed, resumable
        "#]],
    );
}

#[test]
fn it_says_what_it_plays_tells_each_end_and_stops_when_it_is_told_to() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let arguments = ["simulate", "live", "--listen", "127.0.0.1:0", "--speech", "tones", "--scenario"];
    let mut child = command(&root)
        .args(arguments)
        .arg("scenarios/tool-call.json")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("simulating Gemini Live on http://").unwrap().to_owned();
    let mut stream = TcpStream::connect(&address).unwrap();
    let handshake = "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                     Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(handshake.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    let mut lines = Vec::new();
    for _ in 0..3 {
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        lines.push(line.trim_end().to_owned());
    }
    let stop = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(stop.unwrap().success());
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    expect![[r#"
          plays     scenarios/tool-call.json (1 turn)
          speech    tones
        no connection: it asked for a path that is not served (by the client; 0 frames in, 0 out)
        0 connections: 0 turns, 0 calls
    "#]]
    .assert_eq(&format!("{}\n{rest}", lines.join("\n")));
}
