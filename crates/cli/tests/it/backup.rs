//! A backup is restored whole, or nothing is.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use expect_test::expect;
use quarterdeck_testkit::{Tree, tree};
use serde_json::{Value, json};

use crate::data::with_sessions;
use crate::serve::{Server, bare, say, words};
use crate::terminal::{check, quarterdeck};

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Runs a command in the repository, whose tools and records the server has.
fn run(data: &Path, words: &[&str]) -> String {
    let mut command = bare(data);
    command.args(words).arg("--data").arg(data).stdout(std::process::Stdio::piped());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", printed(&output));
    printed(&output)
}

fn backup(files: &Tree) {
    let output = quarterdeck(files.path(), &["backup", "monday"]);
    assert!(output.status.success(), "{}", printed(&output));
}

fn refusal(files: &Tree, arguments: &[&str]) -> String {
    let output = quarterdeck(files.path(), arguments);
    assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
    printed(&output)
}

#[test]
fn restore_after_the_data_folder_was_deleted_gives_the_same_sessions_calendar_trail_and_answers() {
    let site = tempfile::tempdir().unwrap();
    let (data, kept) = (site.path().join("data"), site.path().join("kept"));
    let server = Server::start(&data, &[]);
    let (cookie, answer) = say(&server, "", json!({ "message": "Who designed the Fram?" }));
    let session = answer[0]["messageMetadata"]["sessionId"].as_str().unwrap().to_owned();
    let book = "Book a meeting tomorrow at 15:00 for 30 minutes with anna@example.com about the budget";
    let (_, answer) = say(&server, &cookie, json!({ "message": book, "sessionId": session }));
    let question = answer.iter().find(|part| part["type"] == "data-confirmation").expect("it must ask");
    let approve = json!({ "token": question["data"]["token"], "approve": true }).to_string();
    assert_eq!(server.ask("POST", "/api/confirmations", &cookie, &approve).0, 200);
    // The next message ends the turn that was waiting for the approval.
    say(&server, &cookie, json!({ "message": "Who was Colin Archer?", "sessionId": session }));
    let shown = |server: &Server| server.ask("GET", &format!("/api/sessions/{session}"), &cookie, "").2;
    let before_shown = shown(&server);
    run(&data, &["kb", "build"]);
    // What a session has counted is stored within a quarter of a second.
    let is_stored = || run(&data, &["sessions", "--format", "json"]).contains("\"turns\": 3");
    let until = Instant::now() + Duration::from_secs(10);
    while !is_stored() {
        assert!(Instant::now() < until, "the third turn is not stored");
    }
    // While the server runs.
    let said = run(&data, &["backup", kept.to_str().unwrap()]);
    for part in [
        "the store (format",
        "the audit trail (1 file)",
        "the index of the knowledge base",
        "the key",
        "SHA-256",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    server.signal("-TERM");
    assert_eq!(server.ended().0, Some(0));
    let listings = || {
        [
            run(&data, &["sessions", "--format", "json"]),
            run(&data, &["calendar", "export"]),
            run(&data, &["clients"]),
            run(&data, &["kb", "search", "hull"]),
        ]
    };
    let before = listings();
    let trail = fs::read_to_string(data.join("audit.jsonl")).unwrap();
    fs::remove_dir_all(&data).unwrap();

    let said = run(&data, &["restore", kept.to_str().unwrap()]);
    assert!(said.contains("is restored from"), "{said}");
    assert_eq!(listings(), before);
    assert!(run(&data, &["audit", "verify"]).contains("whole"));
    let restored = fs::read_to_string(data.join("audit.jsonl")).unwrap();
    let lines: Vec<_> = restored.lines().collect();
    let last: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    assert_eq!(last["action"], "restore_backup", "{last}");
    assert!(
        trail.starts_with(&(lines[..lines.len() - 1].join("\n") + "\n")),
        "the lines are those of before"
    );

    let server = Server::start(&data, &[]);
    assert!(shown(&server) == before_shown, "the cookie is as good as before, and so is the conversation");
    let question = json!({ "message": "Who designed the Fram?", "sessionId": session });
    let (_, answer) = say(&server, &cookie, question);
    assert!(words(&answer).contains("Colin Archer"), "{}", words(&answer));
}

#[test]
fn backup_while_a_server_writes_is_restored_with_a_whole_trail() {
    let site = tempfile::tempdir().unwrap();
    let data = site.path().join("data");
    let server = Server::start(&data, &[]);
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for number in 0..30 {
                say(&server, "", json!({ "message": format!("Who designed the Fram? {number}") }));
            }
        });
        for number in 0..3 {
            run(&data, &["backup", site.path().join(format!("kept-{number}")).to_str().unwrap()]);
        }
        writing.join().unwrap();
    });
    for number in 0..3 {
        let restored = site.path().join(format!("restored-{number}"));
        run(&restored, &["restore", site.path().join(format!("kept-{number}")).to_str().unwrap()]);
        assert!(run(&restored, &["audit", "verify"]).contains("whole"));
        run(&restored, &["store", "check"]);
    }
}

#[test]
fn backup_is_a_new_folder_and_never_overwrites() {
    let files = with_sessions();
    fs::write(files.join(".quarterdeck/audit-000001.jsonl"), "{}\n").unwrap();
    fs::create_dir(files.join(".quarterdeck/recordings")).unwrap();
    fs::write(files.join(".quarterdeck/recordings/a.opus"), "sound").unwrap();
    backup(&files);
    let mut names: Vec<_> = fs::read_dir(files.join("monday"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["audit-000001.jsonl", "manifest.json", "quarterdeck.db", "recordings"]);
    check(
        files.path(),
        &["backup", "monday"],
        expect![[r#"
            exit 2
            --- stdout
            --- stderr
            error: monday exists already and was left alone; choose another name
        "#]],
    );
    check(
        files.path(),
        &["backup", "gone/monday"],
        expect![[r#"
            exit 2
            --- stdout
            --- stderr
            error: cannot write gone/monday: there is no folder gone
        "#]],
    );
    let left: Vec<_> = fs::read_dir(files.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(".quarterdeck-backup"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn damaged_and_incomplete_backups_are_refused_with_every_file_that_is_wrong() {
    let files = with_sessions();
    fs::write(files.join(".quarterdeck/cookie_secret"), "x".repeat(64)).unwrap();
    fs::write(files.join(".quarterdeck/registry.json"), "{}").unwrap();
    backup(&files);
    let store = files.join("monday/quarterdeck.db");
    let mut bytes = fs::read(&store).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&store, &bytes).unwrap();
    fs::remove_file(files.join("monday/cookie_secret")).unwrap();
    fs::write(files.join("monday/registry.json"), "{").unwrap();
    for arguments in [&["restore", "--check", "monday"][..], &["restore", "monday", "--data", "new"]] {
        let text = refusal(&files, arguments);
        for problem in [
            "quarterdeck.db is not what was written: its digest differs",
            "cookie_secret is missing",
            "registry.json has 1 bytes instead of 2",
            "help: use another backup",
        ] {
            assert!(text.contains(problem), "{problem}: {text}");
        }
    }
    assert!(!files.join("new").exists(), "nothing was begun");
    fs::remove_file(files.join("monday/manifest.json")).unwrap();
    assert!(
        refusal(&files, &["restore", "monday", "--data", "new"])
            .contains("is not a backup, or it is incomplete")
    );
}

#[test]
fn backup_of_a_newer_version_is_refused() {
    let files = with_sessions();
    backup(&files);
    let path = files.join("monday/manifest.json");
    let mut manifest: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    manifest["format"] = json!(2);
    fs::write(&path, manifest.to_string()).unwrap();
    let text = refusal(&files, &["restore", "monday", "--data", "new"]);
    assert!(text.contains("has format 2, and this version of Quarterdeck knows formats up to 1"), "{text}");
    assert!(text.contains("help: restore it with the version that made it"), "{text}");
}

#[test]
fn folder_that_holds_something_is_left_alone() {
    let files = with_sessions();
    backup(&files);
    let before = fs::read(files.join(".quarterdeck/quarterdeck.db")).unwrap();
    let text = refusal(&files, &["restore", "monday"]);
    assert!(
        text.contains(".quarterdeck is not empty") && text.contains("mv .quarterdeck .quarterdeck.before"),
        "{text}"
    );
    assert_eq!(fs::read(files.join(".quarterdeck/quarterdeck.db")).unwrap(), before);
    fs::create_dir(files.join("empty")).unwrap();
    let output = quarterdeck(files.path(), &["restore", "monday", "--data", "empty"]);
    assert!(output.status.success(), "{}", printed(&output));
}

#[test]
fn interrupted_restore_serves_nothing_and_is_run_again() {
    let files = with_sessions();
    fs::write(files.join(".quarterdeck/cookie_secret"), "x".repeat(64)).unwrap();
    backup(&files);
    // As a process leaves it that was killed between the first file and the store.
    fs::create_dir_all(files.join("new/.restoring")).unwrap();
    fs::copy(files.join("monday/cookie_secret"), files.join("new/cookie_secret")).unwrap();
    fs::copy(files.join("monday/quarterdeck.db"), files.join("new/.restoring/quarterdeck.db")).unwrap();
    let text = refusal(&files, &["serve", "--data", "new", "--listen", "127.0.0.1:0"]);
    assert!(
        text.contains("the restore was interrupted") && text.contains("run `quarterdeck restore` again"),
        "{text}"
    );
    assert!(refusal(&files, &["sessions", "--data", "new"]).contains("nothing has been recorded yet"));
    let output = quarterdeck(files.path(), &["restore", "monday", "--data", "new"]);
    assert!(output.status.success(), "{}", printed(&output));
    assert!(!files.join("new/.restoring").exists());
    let list = |data| quarterdeck(files.path(), &["sessions", "--data", data]).stdout;
    assert_eq!(list("new"), list(".quarterdeck"));
}

#[test]
fn restore_while_a_server_runs_is_refused() {
    let site = tempfile::tempdir().unwrap();
    let data = site.path().join("data");
    let server = Server::start(&data, &[]);
    let kept = site.path().join("kept");
    run(&data, &["backup", kept.to_str().unwrap()]);
    let mut command = bare(&data);
    let output = command.args(["restore"]).arg(&kept).arg("--data").arg(&data).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(printed(&output).contains("another quarterdeck uses"), "{}", printed(&output));
    drop(server);
}

#[test]
fn store_elsewhere_is_restored_where_the_configuration_keeps_it() {
    let files = with_sessions();
    backup(&files);
    let other = tree("//- quarterdeck.toml\n[store]\nurl = \"sqlite:elsewhere/qd.db\"\n");
    fs::create_dir(other.join("elsewhere")).unwrap();
    let kept = files.join("monday");
    let restore = || quarterdeck(other.path(), &["restore", kept.to_str().unwrap()]);
    let output = restore();
    assert!(output.status.success(), "{}", printed(&output));
    assert!(other.join("elsewhere/qd.db").exists() && !other.join(".quarterdeck/quarterdeck.db").exists());
    let list = |files: &Tree| quarterdeck(files.path(), &["sessions"]).stdout;
    assert_eq!(list(&other), list(&files));
    fs::remove_dir_all(other.join(".quarterdeck")).unwrap();
    assert!(
        printed(&restore()).contains("where the configuration keeps the store"),
        "{}",
        printed(&restore())
    );
}
