//! Alarms of a server as an operator runs it: told, sent, lifted and on the record.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Output;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use quarterdeck_testkit::{Tree, tree};
use serde_json::Value;

use crate::serve::{self, ANYWHERE, Server};
use crate::terminal::{quarterdeck, stdout_json};

/// Holds from the start on.
const RULES: &str = r#"{ "rules": [{
    "id": "quiet", "severity": "critical", "summary": "No user is here", "remedy": "Tell an operator.",
    "when": { "kind": "gauge", "series": "quarterdeck_sessions_active", "where": { "mode": "text" }, "below": 1 }
}] }"#;
const SECRET: &str = "a secret of the webhook";

/// Takes messages, and refuses the first.
fn webhook() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/alarms", listener.local_addr().unwrap());
    let (sender, messages) = channel();
    std::thread::spawn(move || {
        for (number, socket) in listener.incoming().enumerate() {
            let mut socket = socket.unwrap();
            let mut text = String::new();
            while !text.ends_with("}}") {
                let mut piece = [0; 4_096];
                let count = socket.read(&mut piece).unwrap();
                text.push_str(std::str::from_utf8(&piece[..count]).unwrap());
            }
            let status = if number == 0 { 503 } else { 204 };
            write!(socket, "HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
            if sender.send(text).is_err() {
                return;
            }
        }
    });
    (url, messages)
}

fn start(files: &Tree, url: &str) -> Server {
    files.write("alerts.json", RULES);
    let mut command = serve::command(&files.join("data"), ANYWHERE);
    command
        .env("QUARTERDECK_ALERTS__RULES_FILE", files.join("alerts.json"))
        .env("QUARTERDECK_ALERTS__WEBHOOK_URL", url)
        .env("QUARTERDECK_ALERTS_SECRET", SECRET);
    Server::begin(&mut command)
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn an_alarm_is_listed_sent_again_until_it_is_taken_lifted_and_on_the_record() {
    let (files, (url, messages)) = (tree(""), webhook());
    let server = start(&files, &url);
    let address = server.address.to_string();
    let cli = |words: &[&str]| quarterdeck(files.path(), &[words, &["--server", &address]].concat());

    let wait = Duration::from_secs(30);
    let (first, second) = (messages.recv_timeout(wait).unwrap(), messages.recv_timeout(wait).unwrap());
    let listed = cli(&["alerts", "--format", "json"]);
    assert_eq!(listed.status.code(), Some(1), "an alarm fires");
    let alarm = stdout_json(&listed)["alarms"][0].clone();
    assert_eq!((&alarm["id"], &alarm["state"]), (&"quiet:mode=text".into(), &"firing".into()), "{alarm}");
    assert!(errors(&cli(&["alerts"])).contains("quiet:mode=text: Tell an operator."));

    let header = |message: &str, name: &str| {
        let line = message.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.expect("the header").to_owned()
    };
    assert_eq!(header(&first, "webhook-id"), header(&second, "webhook-id"), "it is the same message");
    let body = second.split("\r\n\r\n").nth(1).unwrap();
    let time = header(&second, "webhook-timestamp");
    let signed = format!("{}.{time}.{body}", header(&second, "webhook-id"));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.as_bytes());
    let signature =
        base64_simd::STANDARD.encode_to_string(ring::hmac::sign(&key, signed.as_bytes()).as_ref());
    assert_eq!(header(&second, "webhook-signature"), format!("v1,{signature}"));
    assert_eq!(serde_json::from_str::<Value>(body).unwrap()["type"], "alarm.fired");

    assert!(cli(&["alerts", "lift", "quiet:mode=text"]).status.success());
    assert_eq!(
        cli(&["alerts", "lift", "quiet:mode=text"]).status.code(),
        Some(1),
        "it does not fire any more"
    );
    assert!(cli(&["alerts"]).status.success());
    assert!(messages.recv_timeout(wait).unwrap().contains("alarm.lifted"));
    let (_, metrics) = server.get("/metrics?format=prometheus");
    for line in ["quarterdeck_alarms_firing 0", "quarterdeck_alarm_messages_failed_total 1"] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let (_, trail) = server.get("/api/deck/audit?limit=50");
    for words in ["\"change\":\"fired\"", "\"change\":\"lifted\"", "\"action\":\"lift_alarm\""] {
        assert!(trail.contains(words), "{words}: {trail}");
    }
}

#[test]
fn rules_are_listed_and_printed_for_others() {
    let files = tree("");
    let rules = quarterdeck(files.path(), &["alerts", "rules", "--format", "json"]);
    assert!(stdout_json(&rules)["rules"].as_array().unwrap().len() >= 10);
    let printed = |words: &[&str]| String::from_utf8(quarterdeck(files.path(), words).stdout).unwrap();
    assert!(printed(&["alerts", "prometheus"]).contains("QuarterdeckModelFailing"));
    assert!(printed(&["alerts", "grafana"]).contains("quarterdeck_tool_calls_total"));
}

#[test]
fn a_file_that_is_no_file_of_rules_stops_the_start_and_says_why() {
    let files = tree("");
    files.write("alerts.json", r#"{ "rules": [{ "id": "x" }] }"#);
    files.write(
        "quarterdeck.toml",
        "[alerts]\nrules_file = 'alerts.json'\nwebhook_url = 'https://pager.example/'\n",
    );
    let output = quarterdeck(files.path(), &["serve"]);
    assert_eq!(output.status.code(), Some(1));
    let printed = errors(&output);
    assert!(printed.contains("alerts.rules_file") && printed.contains("missing field"), "{printed}");
    assert!(printed.contains("QUARTERDECK_ALERTS_SECRET"), "{printed}");
}
