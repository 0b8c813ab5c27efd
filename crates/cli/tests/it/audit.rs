use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use expect_test::expect;
use quarterdeck_contracts::{Commit, Store, Table};
use quarterdeck_testkit::tree;
use serde_json::json;

use crate::data::{record, run, store, with_trail};
use crate::terminal::{check, command, quarterdeck, stdout_json};

const TRAIL: &str = ".quarterdeck/audit.jsonl";

#[test]
fn tail_shows_the_last_lines_and_nothing_that_a_terminal_would_obey() {
    check(
        with_trail().path(),
        &["audit", "tail", "-n", "4"],
        expect![[r#"
            exit 0
            --- stdout
            2026-01-13T09:00:01.000Z  tool_execution      kb_search           ok                     14 ms  ses_1                 fridtjof
            2026-01-13T09:00:02.000Z  tool_execution      send_mail           VALIDATION              3 ms  ses_1                 fridtjof
            2026-01-13T09:00:03.000Z  confirmation        send_mail           approved                   -  ses_1                 fridtjof
            2026-01-13T09:00:04.000Z  tool_execution      kb⟨U+001B⟩[2Jsearch  NOT_FOUND               9 ms  ses_2                 hjalmar
            --- stderr
        "#]],
    );
}

#[test]
fn tail_follows_what_is_written() {
    let files = with_trail();
    let mut child = command(files.path())
        .args(["audit", "tail", "-n", "1", "--follow"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("hjalmar"));
    record(&files, &[(5, "session_end", json!({ "clientId": "sverdrup" }))]);
    let line = lines.next().unwrap().unwrap();
    assert!(line.contains("session_end") && line.contains("sverdrup"), "{line}");
    // The trail is cut off: it is shown from its start again.
    fs::write(files.join(TRAIL), "").unwrap();
    record(&files, &[]);
    assert!(lines.next().unwrap().unwrap().contains("audit_gap"));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn query_finds_lines_by_what_they_say() {
    let files = with_trail();
    check(
        files.path(),
        &["audit", "query", "--tool", "send_mail", "--error", "VALIDATION"],
        expect![[r#"
        exit 0
        --- stdout
        2026-01-13T09:00:02.000Z  tool_execution      send_mail           VALIDATION              3 ms  ses_1                 fridtjof
        --- stderr
    "#]],
    );
    check(
        files.path(),
        &[
            "audit",
            "query",
            "--client",
            "fridtjof",
            "--since",
            "2026-01-13T10:00:01+01:00",
            "--until",
            "2026-01-13T09:00:03Z",
        ],
        expect![[r#"
            exit 0
            --- stdout
            2026-01-13T09:00:01.000Z  tool_execution      kb_search           ok                     14 ms  ses_1                 fridtjof
            2026-01-13T09:00:02.000Z  tool_execution      send_mail           VALIDATION              3 ms  ses_1                 fridtjof
            --- stderr
        "#]],
    );
    check(
        files.path(),
        &["audit", "query", "--session", "ses_2", "--format", "json"],
        expect![[r#"
        exit 0
        --- stdout
        {"seq":5,"prev":"e16328022a1b419c5c7981dbc8c0803d2fb89d897841758a1904a92db620ab60","event":"tool_execution","time":"2026-01-13T09:00:04.000Z","sessionId":"ses_2","clientId":"hjalmar","toolId":"kb\u001b[2Jsearch","duration":9,"ok":false,"errorType":"NOT_FOUND","hash":"56a569bdbda67f810df1bb2936602278c69aac0b81c699ac555d4c9ebef0118f"}
        --- stderr
    "#]],
    );
    check(
        files.path(),
        &["audit", "query", "--event", "nothing"],
        expect![[r#"
        exit 0
        --- stdout
        --- stderr
    "#]],
    );
    check(
        files.path(),
        &["audit", "query", "--since", "yesterday"],
        expect![[r#"
        exit 2
        --- stdout
        --- stderr
        error: invalid value 'yesterday' for '--since <TIME>': write 2026-01-13, 2026-01-13T09:00:00Z, or how long ago, such as 2h

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn damaged_line_is_warned_about_and_skipped() {
    let files = with_trail();
    let text = fs::read_to_string(files.join(TRAIL)).unwrap();
    files.write(TRAIL, text.replace("{\"seq\":3,", "{\"seq\":3,,") + "{\"seq\":6,\"pr");
    check(
        files.path(),
        &["audit", "query", "--client", "fridtjof"],
        expect![[r#"
            exit 1
            --- stdout
            2026-01-13T09:00:00.000Z  session_start       -                   -                          -  ses_1                 fridtjof
            2026-01-13T09:00:01.000Z  tool_execution      kb_search           ok                     14 ms  ses_1                 fridtjof
            2026-01-13T09:00:03.000Z  confirmation        send_mail           approved                   -  ses_1                 fridtjof
            --- stderr
            warning: line 3 is damaged: it is not a JSON object
            warning: line 6 is incomplete: it is still being written, or was torn
        "#]],
    );
    check(
        files.path(),
        &["audit", "tail", "-n", "1"],
        expect![[r#"
            exit 0
            --- stdout
            2026-01-13T09:00:04.000Z  tool_execution      kb⟨U+001B⟩[2Jsearch  NOT_FOUND               9 ms  ses_2                 hjalmar
            --- stderr
            warning: the line at byte 1605 is incomplete: it is still being written, or was torn
        "#]],
    );
    let output = quarterdeck(files.path(), &["audit", "export"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 4);
}

#[test]
fn export_copies_lines_byte_for_byte_and_never_overwrites() {
    let files = with_trail();
    let whole = fs::read(files.join(TRAIL)).unwrap();
    assert_eq!(quarterdeck(files.path(), &["audit", "export"]).stdout, whole);
    let arguments = ["audit", "export", "--since", "2026-01-13T09:00:03Z", "--out", "end.jsonl"];
    check(
        files.path(),
        &arguments,
        expect![[r#"
        exit 0
        --- stdout
        --- stderr
        2 lines written to end.jsonl
    "#]],
    );
    let end = fs::read(files.join("end.jsonl")).unwrap();
    assert!(whole.ends_with(&end) && end.len() < whole.len());
    check(
        files.path(),
        &arguments,
        expect![[r#"
        exit 2
        --- stdout
        --- stderr
        error: end.jsonl exists already and was left alone; choose another name
    "#]],
    );
    check(
        files.path(),
        &["audit", "export", "--out", "gone/end.jsonl"],
        expect![[r#"
        exit 2
        --- stdout
        --- stderr
        error: cannot write gone/end.jsonl: there is no folder gone
    "#]],
    );
}

#[test]
fn verify_says_that_a_trail_is_whole() {
    let files = with_trail();
    check(
        files.path(),
        &["audit", "verify"],
        expect![[r#"
        exit 0
        --- stdout
        .quarterdeck/audit.jsonl: 5 lines, whole
        --- stderr
    "#]],
    );
    assert_eq!(
        stdout_json(&quarterdeck(files.path(), &["audit", "verify", "--format", "json"])),
        json!({
            "whole": true, "lines": 5, "unconfirmed": 0, "fault": null,
            "closedSegments": 0, "cut": null, "seals": null,
        })
    );
}

#[test]
fn verify_finds_a_changed_line() {
    let files = with_trail();
    let text = fs::read_to_string(files.join(TRAIL)).unwrap();
    files.write(TRAIL, text.replace("VALIDATION", "VALIDATIOM"));
    check(
        files.path(),
        &["audit", "verify"],
        expect![[r#"
            exit 1
            --- stdout
            .quarterdeck/audit.jsonl: line 3: it is not a line of the audit trail
            the chain holds for 2 lines
            --- stderr
        "#]],
    );
}

#[test]
fn verify_finds_a_missing_line() {
    let files = with_trail();
    let text = fs::read_to_string(files.join(TRAIL)).unwrap();
    let without: String = text
        .lines()
        .enumerate()
        .filter(|(index, _)| *index != 1)
        .map(|(_, line)| format!("{line}\n"))
        .collect();
    files.write(TRAIL, without);
    check(
        files.path(),
        &["audit", "verify"],
        expect![[r#"
            exit 1
            --- stdout
            .quarterdeck/audit.jsonl: line 2: it is number 3, and number 2 was expected: lines are missing
            the chain holds for 1 line
            --- stderr
        "#]],
    );
}

#[test]
fn verify_finds_a_cut_off_end_also_after_the_trail_went_on() {
    let files = with_trail();
    let text = fs::read_to_string(files.join(TRAIL)).unwrap();
    files.write(TRAIL, text.lines().take(3).map(|line| format!("{line}\n")).collect::<String>());
    check(
        files.path(),
        &["audit", "verify"],
        expect![[r#"
            exit 1
            --- stdout
            .quarterdeck/audit.jsonl: the trail ends at line 3, and the line 5 that the store knows is not in it: it was cut off or replaced
            the chain holds for 3 lines
            --- stderr
        "#]],
    );
    record(&files, &[(9, "session_end", json!({}))]);
    check(
        files.path(),
        &["audit", "verify"],
        expect![[r#"
            exit 1
            --- stdout
            .quarterdeck/audit.jsonl: line 4: lines were cut off before it: the trail had 5 and was left with 3
            the chain holds for 5 lines
            --- stderr
        "#]],
    );
    fs::remove_file(files.join(TRAIL)).unwrap();
    check(
        files.path(),
        &["audit", "verify"],
        expect![[r#"
            exit 1
            --- stdout
            .quarterdeck/audit.jsonl: the trail is missing, and the store knows one whose last line is number 5: it was removed
            the chain holds for 0 lines
            --- stderr
        "#]],
    );
}

#[test]
fn verify_counts_lines_after_the_known_end_as_unconfirmed() {
    let files = with_trail();
    let store = store(&files);
    run(store.commit(Commit::default().delete(Table::Audit, "local"))).unwrap();
    drop(store);
    check(
        files.path(),
        &["audit", "verify"],
        expect![[r#"
            exit 1
            --- stdout
            .quarterdeck/audit.jsonl: the store does not know this trail, so it may have been cut off
            the chain holds for 5 lines
            --- stderr
        "#]],
    );
    fs::remove_file(files.join(".quarterdeck/quarterdeck.db")).unwrap();
    check(
        files.path(),
        &["audit", "verify"],
        expect![[r#"
            exit 2
            --- stdout
            --- stderr
            error: cannot verify .quarterdeck/audit.jsonl: .quarterdeck/quarterdeck.db, which keeps the end of the chain, is missing
            help: put the store back from a backup, and run this again
        "#]],
    );
}

#[test]
fn reading_commands_create_nothing() {
    let files = tree("");
    check(
        files.path(),
        &["audit", "tail"],
        expect![[r#"
            exit 2
            --- stdout
            --- stderr
            error: nothing has been recorded yet: there is no .quarterdeck/audit.jsonl
            help: run this in the folder that quarterdeck runs in, or point `--data` at its data folder
        "#]],
    );
    for arguments in [
        &["audit", "query"][..],
        &["audit", "export", "--out", "trail.jsonl"],
        &["audit", "verify"],
        &["blocks"],
        &["blocks", "lift", "fridtjof"],
        &["sessions", "--active"],
        &["sessions", "end", "ses_1"],
        &["clients", "list"],
        &["clients", "erase", "fridtjof", "--yes"],
        &["backup", "copy"],
        &["calendar", "list"],
        &["calendar", "export"],
    ] {
        let output = quarterdeck(files.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(printed.starts_with("error: nothing has been recorded yet"), "{arguments:?}: {printed}");
    }
    assert_eq!(fs::read_dir(files.path()).unwrap().count(), 0);
}
