//! Files that a newer release has left: an older program refuses each with a sentence that says what to do, and changes
//! nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use quarterdeck_knowledge::store::KNOWLEDGE_FORMAT;
use quarterdeck_store::SQLITE_FORMAT;
use quarterdeck_testkit::{PostgresServer, PostgresVersion};
use serde_json::{Value, json};

use crate::serve::{self, ANYWHERE, Server};
use crate::small_site::{Site, contents, ended_at_once};
use crate::terminal::command;

/// Where SQLite keeps the version that a program gives its file.
const USER_VERSION_AT: usize = 60;

fn set_version(file: &Path, version: i64) {
    let mut bytes = fs::read(file).unwrap();
    let version = u32::try_from(version).unwrap().to_be_bytes();
    bytes[USER_VERSION_AT..USER_VERSION_AT + 4].copy_from_slice(&version);
    fs::write(file, bytes).unwrap();
}

/// Every file of a folder and of the folders in it, but for what is made by looking.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = contents(folder);
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(snapshot(&entry.path()));
        }
    }
    found
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Runs servers with these options, and commands, on the data folder of a site. Each must be refused with the expected
/// words, and change nothing.
fn check_refused(site: &Site, servers: &[&[&str]], commands: &[&str], expected: &[&str]) {
    let before = snapshot(&site.data());
    let data = site.data().display().to_string();
    let check = |typed: &str, output: &Output| {
        let said = printed(output);
        assert_eq!(output.status.code(), Some(2), "{typed}: {said}");
        for words in expected {
            assert!(said.contains(words), "{typed}: {words}: {said}");
        }
        for words in ["damaged", "--new-store`", "moved aside"] {
            assert!(!said.contains(words), "{typed}: it is newer, not damaged: {said}");
        }
        let after = snapshot(&site.data());
        assert!(after.keys().eq(before.keys()), "{typed}: {:?} is now {:?}", before.keys(), after.keys());
        for (path, bytes) in &before {
            assert!(after[path] == *bytes, "{typed}: {} has changed", path.display());
        }
    };
    for options in servers {
        check(&format!("serve {options:?}"), &ended_at_once(&mut site.serve(options)));
    }
    for typed in commands {
        let words: Vec<_> = typed.split(' ').chain(["--data", &data]).collect();
        check(typed, &command(site.files.path()).args(words).output().unwrap());
    }
}

#[test]
fn newer_store_is_refused_by_every_command_and_left_as_it_is() {
    let site = Site::used();
    set_version(&site.data().join("quarterdeck.db"), SQLITE_FORMAT + 1);
    let format = format!(
        "has format {}, and this version of Quarterdeck knows formats up to {SQLITE_FORMAT}",
        SQLITE_FORMAT + 1
    );
    let commands = [
        "sessions",
        "clients",
        "blocks",
        "blocks lift fridtjof",
        "store check",
        "store list",
        "store vacuum",
        "audit verify",
        "calendar list --from 2026-12-01 --to 2026-12-02",
        "backup monday",
    ];
    let way_out = "use the newer version, or restore a backup from before the upgrade";
    // `--new-store` accepts that a store was lost, and this one is not.
    check_refused(&site, &[&[], &["--new-store"]], &commands, &[&format, way_out]);
    assert!(!site.files.join("monday").exists(), "there is no half of a backup");
}

#[test]
fn newer_audit_trail_is_refused_for_reading_and_for_writing() {
    let site = Site::used();
    let (trail, closed) = (site.data().join("audit.jsonl"), site.data().join("audit.jsonl.segments"));
    fs::create_dir(&closed).unwrap();
    fs::rename(&trail, closed.join("000001.jsonl")).unwrap();
    // A release that changes the format begins a segment with it. Whatever else is in it, this version does not know.
    let header = json!({ "event": "audit_segment", "format": 2, "segment": 2, "digest": "of another kind" });
    fs::write(&trail, format!("{header}\n{{\"event\":\"tool_execution\"}}\n")).unwrap();
    let commands =
        ["audit verify", "audit query", "audit tail", "audit export", "blocks lift fridtjof", "store vacuum"];
    let expected = [
        "audit.jsonl",
        "it has format 2, and this version of Quarterdeck knows formats up to 1",
        "use the newer version, or restore a backup from before the upgrade",
    ];
    check_refused(&site, &[&[]], &commands, &expected);
}

#[test]
fn newer_knowledge_file_is_not_used_and_not_built_over() {
    let site = Site::used();
    let kb = site.files.join("kb/studio/doc");
    fs::create_dir_all(&kb).unwrap();
    fs::write(kb.join("hull.md"), "# The hull\n\nColin Archer gave her a rounded hull.\n").unwrap();
    let data = site.data().display().to_string();
    let run = |words: &[&str]| {
        let mut command = command(site.files.path());
        command.env("XDG_CACHE_HOME", site.files.join("no-cache"));
        command.args(words).args(["--data", &data]).output().unwrap()
    };
    assert!(run(&["kb", "build"]).status.success());
    let file = site.data().join("kb.db");
    set_version(&file, i64::from(KNOWLEDGE_FORMAT) + 1);
    let before = fs::read(&file).unwrap();
    let sentence =
        "was written by a newer version of Quarterdeck; update, or move it away, and a new one is made";
    let built = run(&["kb", "build"]);
    assert_eq!(built.status.code(), Some(2), "{}", printed(&built));
    assert!(printed(&built).contains(sentence), "{}", printed(&built));
    // The file is made from the records, so those answer without it.
    let found = run(&["kb", "search", "rounded hull"]);
    assert!(found.status.success() && printed(&found).contains("doc:hull"), "{}", printed(&found));
    assert!(printed(&found).contains(sentence), "{}", printed(&found));
    let mut serve = serve::command(&site.data(), ANYWHERE);
    let server = Server::begin(serve.arg("--tools").arg(site.tools()).arg("--kb").arg(site.files.join("kb")));
    assert!(server.printed.join("\n").contains(sentence), "{:?}", server.printed);
    assert_eq!(server.get("/readyz").0, 200);
    server.signal("-TERM");
    assert_eq!(server.ended().0, Some(0));
    assert!(fs::read(&file).unwrap() == before, "it has changed");
    assert!(!site.data().join("kb.db.damaged-1").exists(), "it is newer, not damaged");
}

#[test]
fn newer_backup_is_refused_and_nothing_is_restored() {
    let site = Site::used();
    let data = site.data().display().to_string();
    let run = |words: &[&str]| command(site.files.path()).args(words).output().unwrap();
    assert!(run(&["backup", "monday", "--data", &data]).status.success());
    let path = site.files.join("monday/manifest.json");
    let mut manifest: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    manifest["format"] = json!(2);
    // What a later format may hold is not looked at.
    manifest["backup"] = json!({ "parts": [] });
    fs::write(&path, manifest.to_string()).unwrap();
    let before = snapshot(&site.files.join("monday"));
    for words in [&["restore", "--check", "monday"][..], &["restore", "monday", "--data", "new"]] {
        let said = run(words);
        assert_eq!(said.status.code(), Some(2), "{words:?}: {}", printed(&said));
        for expected in ["has format 2", "help: restore it with the version that made it, or a newer one"] {
            assert!(printed(&said).contains(expected), "{words:?}: {}", printed(&said));
        }
    }
    assert!(!site.files.join("new").exists() && snapshot(&site.files.join("monday")) == before);
}

#[test]
fn newer_schema_in_postgresql_is_refused_by_servers_and_commands_and_left_as_it_is() {
    let Some(server) = PostgresServer::shared(PostgresVersion::V18) else { return };
    let url = server.create_database();
    let name = url.rsplit('/').next().unwrap().split('?').next().unwrap();
    let site = Site::new();
    let data = site.data().display().to_string();
    let run = |words: &[&str]| {
        let mut command = command(site.files.path());
        command.env("QUARTERDECK_STORE__URL", &url).env("QUARTERDECK_CLUSTER__NODE", "fram");
        command.args(words).args(["--data", &data]).output().unwrap()
    };
    let mut serve = site.serve(&[]);
    serve.env("QUARTERDECK_STORE__URL", &url).env("QUARTERDECK_CLUSTER__NODE", "fram");
    let served = Server::begin(&mut serve);
    assert_eq!(served.ask("POST", "/api/chat", "", r#"{"message":"Hello there"}"#).0, 200);
    served.signal("-TERM");
    assert_eq!(served.ended().0, Some(0));
    server.execute(name, "INSERT INTO qd.steps VALUES (2, 1), (3, 2)");
    let state = || {
        server.execute(
            name,
            "SELECT (SELECT json_agg(steps ORDER BY step) FROM qd.steps), (SELECT json_agg(rows ORDER BY tab, key) FROM qd.rows)",
        )
    };
    let before = (state(), snapshot(&site.data()));
    let mut refused = vec![("serve", ended_at_once(&mut serve))];
    for typed in ["sessions", "blocks lift fridtjof", "store migrate", "store vacuum", "backup monday"] {
        refused.push((typed, run(&typed.split(' ').collect::<Vec<_>>())));
    }
    for (typed, output) in refused {
        let said = printed(&output);
        assert_eq!(output.status.code(), Some(2), "{typed}: {said}");
        let sentence = "has schema 3, which programs that know less than schema 2 must not use";
        assert!(said.contains(sentence) && said.contains("use the newer version"), "{typed}: {said}");
    }
    assert!((state(), snapshot(&site.data())) == before, "{} is now {}", before.0, state());
}
