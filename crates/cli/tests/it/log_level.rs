//! The level of the log, changed while the server runs.

use std::process::Output;
use std::time::{Duration, Instant};

use quarterdeck_testkit::tree;
use serde_json::Value;

use crate::serve::Server;
use crate::terminal::{quarterdeck, stdout_json};

fn printed(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_level_holds_at_once_goes_back_by_itself_and_is_on_the_record() {
    let files = tree("");
    let mut server = Server::start(&files.join("data"), &[]);
    let log = server.collect_log();
    let address = server.address.to_string();
    let cli = |words: &[&str]| quarterdeck(files.path(), &[words, &["--server", &address]].concat());
    assert_eq!(printed(&cli(&["log-level"])), ("info".into(), String::new()));
    server.get("/healthz");

    let (filter, note) = printed(&cli(&["log-level", "quarterdeck_server=debug", "--for", "2s"]));
    assert_eq!(filter, "info,quarterdeck_server=debug");
    assert!(note.starts_with("goes back to info at "), "{note}");
    server.get("/healthz");
    let deadline = Instant::now() + Duration::from_secs(30);
    while stdout_json(&cli(&["log-level", "--format", "json"]))["filter"] != "info" {
        assert!(Instant::now() < deadline, "it does not go back");
        std::thread::sleep(Duration::from_millis(100));
    }
    server.get("/healthz");

    assert_eq!(printed(&cli(&["log-level", "warn"])).0, "warn");
    server.get("/api/me");
    assert_eq!(printed(&cli(&["log-level", "--reset"])), ("info".into(), String::new()));
    server.get("/api/me");

    let (_, trail) = server.get("/api/deck/audit?limit=50");
    for words in ["\"action\":\"log_level\"", "\"action\":\"log_level_reverted\"", "\"forSeconds\":2"] {
        assert!(trail.contains(words), "{words}: {trail}");
    }
    server.signal("-TERM");
    let log = log.join().unwrap();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let routes: Vec<_> = lines.filter_map(|line| Some(line["route"].as_str()?.to_owned())).collect();
    let count = |route: &str| routes.iter().filter(|known| *known == route).count();
    assert_eq!(count("/healthz"), 1, "probes are logged at debug alone: {log}");
    assert_eq!(count("/api/me"), 1, "nothing is at warn: {log}");
}

#[test]
fn a_wrong_filter_is_refused_with_what_is_allowed() {
    let files = tree("");
    let server = Server::start(&files.join("data"), &[]);
    let address = server.address.to_string();
    let cli = |words: &[&str]| quarterdeck(files.path(), &[words, &["--server", &address]].concat());
    for (words, reason) in [
        (&["log-level", "debgu"][..], "Did you mean `debug`?"),
        (&["log-level", "rmcp=trace"], "`rmcp` is no part of the program: write one of quarterdeck, "),
        (&["log-level", "debug", "--for", "2d"], "`forSeconds` is 1 to 86400"),
        (&["log-level", "debug", "--for", "soon"], "such as 90s, 10m or 2h"),
        (&["log-level", "--for", "1m"], "required"),
    ] {
        let refused = cli(words);
        assert_eq!(refused.status.code(), Some(2), "{words:?}");
        assert!(printed(&refused).1.contains(reason), "{words:?}: {}", printed(&refused).1);
    }
    assert_eq!(printed(&cli(&["log-level"])).0, "info", "nothing has changed");
}
