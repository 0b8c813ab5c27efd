//! What a newcomer meets first: a key that is not enough, a site that is not listed, and what `make run` installs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::serve::{ANYWHERE, Server, command, say, words};

#[test]
fn a_key_alone_names_its_model_in_the_banner() {
    for (key, provider) in
        [("OPENAI_API_KEY", "openai/"), ("GEMINI_API_KEY", "gemini/"), ("ANTHROPIC_API_KEY", "anthropic/")]
    {
        let data = tempfile::tempdir().unwrap();
        let server = Server::begin(command(data.path(), ANYWHERE).env(key, "not-a-real-key"));
        let (_, me) = server.get("/api/me");
        let me: serde_json::Value = serde_json::from_str(&me).unwrap();
        assert_eq!(me["isRehearsal"], false, "{key}: {me}");
        let model = me["model"].as_str().unwrap();
        assert!(model.strip_prefix(provider).is_some_and(|name| !name.is_empty()), "{key}: {model}");
        server.signal("-INT");
        let (_, printed) = server.ended();
        assert!(printed.contains(&format!("text      {model}")), "{key}: {printed}");
    }
}

#[test]
fn a_model_that_cannot_be_used_is_warned_about_and_rehearsed() {
    for (variables, warning) in [
        (&[("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")][..], "QUARTERDECK_TEXT__MODEL"),
        (&[("OPENAI_API_KEY", "one\ntwo")], "more than one line"),
        (&[("QUARTERDECK_TEXT__PROVIDER", "gemini")], "gemini needs a key"),
    ] {
        let data = tempfile::tempdir().unwrap();
        let server = Server::begin(command(data.path(), ANYWHERE).envs(variables.iter().copied()));
        let warned = server.printed.join("\n");
        assert!(warned.contains(warning) && warned.contains("the built-in rehearsal answers"), "{warned}");
        let (_, answer) = say(&server, "", json!({ "message": "What is Framheim?" }));
        assert!(words(&answer).contains("South Pole expedition"), "{}", words(&answer));
    }
}

#[test]
fn a_refused_origin_is_in_the_log_with_the_line_to_add() {
    let data = tempfile::tempdir().unwrap();
    let mut server = Server::start(data.path(), &[]);
    let log = server.collect_log();
    let (status, ..) =
        server.ask("POST", "/api/chat", "origin: https://shop.example\r\n", r#"{ "message": "hello" }"#);
    assert_eq!(status, 403);
    drop(server);
    let log = log.join().unwrap();
    let refused = log.lines().find(|line| line.contains("origin refused")).unwrap_or_else(|| panic!("{log}"));
    assert!(refused.contains("origins = [") && refused.contains("https://shop.example"), "{refused}");
}

/// A `cargo` that notes what it is asked and knows no `nextest`.
const CARGO: &str = "#!/bin/sh\necho \"$@\" >> \"$ASKED\"\n[ \"$1\" != nextest ]\n";

#[test]
fn running_installs_nothing_that_only_tests_need() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().unwrap();
    let (cargo, asked) = (folder.path().join("cargo"), folder.path().join("asked"));
    fs::write(&cargo, CARGO).unwrap();
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
    let setup = |what: &str| {
        fs::write(&asked, "").unwrap();
        let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
        let mut command = Command::new(root.join("scripts/setup"));
        let output = command.arg(what).env("PATH", path).env("ASKED", &asked).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::read_to_string(&asked).unwrap()
    };
    assert_eq!(setup("run"), "", "cargo is not even asked");
    assert!(setup("test").contains("install cargo-nextest"));
    let makefile = fs::read_to_string(root.join("Makefile")).unwrap();
    for target in ["run", "dev"] {
        let (_, rule) = makefile.split_once(&format!("\n{target}: ##")).expect("it needs no other target");
        assert!(rule.split("\n\n").next().unwrap().contains("@scripts/setup run"), "{target}");
    }
}
