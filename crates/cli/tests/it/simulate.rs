//! A provider that is simulated, from the command line.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use expect_test::expect;
use quarterdeck_testkit::{Tree, tree};
use quarterdeck_websocket::{Limits, Message, upgrade};
use serde_json::{Value, json};

use crate::terminal::{check, command};

#[test]
fn invalid_scenario_is_refused_with_its_place() {
    let files = tree("");
    files.write("bad.json", "{ \"turns\": [\n  { \"steps\": [{ \"shout\": \"Hello\" }] }\n] }");
    check(
        files.path(),
        &["simulate", "live", "--scenario", "bad.json"],
        expect![[r#"
            exit 2
            --- stdout
            --- stderr
            error: bad.json is not a scenario; docs/SIMULATOR.md describes the format: line 2: turns[0].steps[0]: must have exactly one of say, think, call, await, cancel, interrupt, expectInterruption, goAway, drop, wait, frame, malformed, resumable
        "#]],
    );
}

#[test]
fn it_says_what_it_plays_tells_each_end_and_stops_when_it_is_told_to() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let arguments = ["simulate", "live", "--listen", "127.0.0.1:0", "--speech", "tones", "--scenario"];
    let (mut child, mut printed, address) =
        start(command(&root).args(arguments).arg("scenarios/tool-call.json"));
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
        printed.read_line(&mut line).unwrap();
        lines.push(line.trim_end().to_owned());
    }
    let stop = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(stop.unwrap().success());
    let mut rest = String::new();
    printed.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    expect![[r#"
          plays     scenarios/tool-call.json (1 turn)
          speech    tones
        no connection: it asked for a path that is not served (by the client; 0 frames in, 0 out)
        0 connections: 0 turns, 0 calls
    "#]]
    .assert_eq(&format!("{}\n{rest}", lines.join("\n")));
}

#[tokio::test]
async fn words_are_said_by_the_voice_that_is_installed() {
    let files = with_a_voice();
    let path = format!("{}:{}", files.path().display(), std::env::var("PATH").unwrap());
    let arguments = ["simulate", "live", "--listen", "127.0.0.1:0", "--once", "--speech", "espeak"];
    let (mut child, _said, address) =
        start(command(files.path()).args(arguments).args(["--scenario", "scenario.json"]).env("PATH", path));
    let heard = tokio::time::timeout(Duration::from_secs(30), turn(&address)).await.unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    // Three of its samples in base64.
    let times = heard.matches("0gTSBNIE").count();
    assert_eq!(times * 8, heard.len(), "the voice and nothing else: {heard:.80}");
    assert_eq!(times * 3, SAMPLES, "and all of it");
}

/// What is said stays out of the process list, and many calls at once do not make as many processes.
#[tokio::test]
async fn words_stay_out_of_the_process_list_and_voices_within_a_bound() {
    let files = with_a_voice();
    let program = "#!/bin/sh\nhere=\"${0%/*}\"\necho \"$*\" >> \"$here/arguments\"\n\
                   [ \"$1\" = --version ] && exit\nmkdir -p \"$here/running/$$\"\n\
                   ls \"$here/running\" | wc -l >> \"$here/concurrency\"\ncat >> \"$here/texts\"\nsleep 0.3\n\
                   rmdir \"$here/running/$$\"\ncat \"$here/voice.wav\"\n";
    files.write("espeak-ng", program);
    let path = format!("{}:{}", files.path().display(), std::env::var("PATH").unwrap());
    let arguments = ["simulate", "live", "--listen", "127.0.0.1:0", "--speech", "espeak"];
    let (mut child, _said, address) =
        start(command(files.path()).args(arguments).args(["--scenario", "scenario.json"]).env("PATH", path));
    let turns = all_turns(&address, 16);
    let heard = tokio::time::timeout(Duration::from_secs(60), turns).await.unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(heard.iter().all(|heard| !heard.is_empty()));
    let read = |name: &str| std::fs::read_to_string(files.join(name)).unwrap();
    assert!(!read("arguments").contains("Good morning"), "{}", read("arguments"));
    assert!(read("texts").contains("Good morning."));
    let most = read("concurrency").lines().map(|line| line.trim().parse::<usize>().unwrap()).max().unwrap();
    assert!((2..=4).contains(&most), "{most} voices at once");
}

/// So many callers at the same time, each listening to one turn.
async fn all_turns(address: &str, callers: usize) -> Vec<String> {
    let address = address.to_owned();
    let turns: Vec<_> = (0..callers)
        .map(|_| {
            let address = address.clone();
            tokio::spawn(async move { turn(&address).await })
        })
        .collect();
    let mut heard = Vec::new();
    for turn in turns {
        heard.push(turn.await.unwrap());
    }
    heard
}

/// Starts it and waits until it listens: the process, what it says from then on, and where it is.
fn start(command: &mut Command) -> (Child, BufReader<ChildStderr>, String) {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut printed = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    printed.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("simulating Gemini Live on http://").unwrap().to_owned();
    (child, printed, address)
}

/// Half a second.
const SAMPLES: usize = 12_000;

/// A program that answers to espeak-ng's name and says one sample, 1234, again and again.
fn with_a_voice() -> Tree {
    let files = tree("");
    let mut wav = b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
    for field in [24_000_u32, 48_000] {
        wav.extend(field.to_le_bytes());
    }
    wav.extend(b"\x02\0\x10\0data\xff\xff\xff\xff");
    wav.extend(1234_i16.to_le_bytes().repeat(SAMPLES));
    files.write("voice.wav", wav);
    let program = "#!/bin/sh\n[ \"$1\" = --version ] || cat \"${0%/*}/voice.wav\"\n";
    files.write("espeak-ng", program);
    std::fs::set_permissions(files.join("espeak-ng"), Permissions::from_mode(0o755)).unwrap();
    let turns = json!([{ "begins": "start", "steps": [{ "say": "Good morning." }] }]);
    let audio = json!({ "partMs": 40, "partsPerFrame": 1, "speed": 0 });
    files.write("scenario.json", json!({ "turns": turns, "audio": audio }).to_string());
    files
}

/// Connects and listens to one turn. The audio, in base64, one piece after the other.
async fn turn(address: &str) -> String {
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let path = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent?key=k";
    let mut socket =
        upgrade(stream, address, path, &[], Limits { max_message_bytes: 1 << 20 }).await.unwrap();
    let config = json!({ "responseModalities": ["AUDIO"] });
    let setup = json!({ "setup": { "model": "models/any", "generationConfig": config } });
    socket.send_text(&setup.to_string());
    socket.flush().await.unwrap();
    let mut heard = String::new();
    loop {
        while let Some(message) = socket.next() {
            let frame: Value = match message.unwrap() {
                Message::Text(text) => serde_json::from_str(text).unwrap(),
                Message::Binary(bytes) => serde_json::from_slice(bytes).unwrap(),
                _ => continue,
            };
            let content = &frame["serverContent"];
            for part in content["modelTurn"]["parts"].as_array().into_iter().flatten() {
                heard.push_str(part["inlineData"]["data"].as_str().unwrap());
            }
            if content["turnComplete"] == true {
                return heard;
            }
        }
        socket.fill().await.unwrap();
    }
}

/// Every call that stands somewhere in a scenario.
fn calls(value: &Value, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| calls(item, found)),
        Value::Object(members) => {
            if let Some(name) = members.get("name").and_then(Value::as_str) {
                let args = members.get("args").cloned().unwrap_or_else(|| json!({}));
                found.push((name.to_owned(), args));
            }
            members.values().for_each(|member| calls(member, found));
        }
        _ => {}
    }
}

#[test]
fn what_the_scenarios_call_can_be_called_by_voice() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = Vec::new();
    for scenario in std::fs::read_dir(root.join("scenarios")).unwrap() {
        let text = std::fs::read_to_string(scenario.unwrap().path()).unwrap();
        calls(&serde_json::from_str(&text).unwrap(), &mut all);
    }
    // One of them is undeclared on purpose.
    all.retain(|(name, _)| name != "ping");
    all.sort_by_key(|(name, args)| format!("{name} {args}"));
    all.dedup();
    assert!(all.len() >= 4, "{all:?}");
    let cache = tempfile::tempdir().unwrap();
    for (name, args) in all {
        let mut command = command(&root);
        // Words alone: a debug build takes long for a model, and nothing here depends on it.
        command.env("XDG_CACHE_HOME", cache.path());
        command.args(["call", &name, &args.to_string(), "--mode", "voice", "--data"]).arg(cache.path());
        let output = command.output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{name} {args}: {printed}");
    }
}
