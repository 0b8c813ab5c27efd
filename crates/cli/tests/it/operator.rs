use std::fs;
use std::os::unix::fs::PermissionsExt;

use expect_test::expect;
use quarterdeck_contracts::{Commit, Store, Table};
use quarterdeck_testkit::tree;
use serde_json::json;

use crate::data::{NINE, last_line, run, store, with_sessions};
use crate::terminal::{check, quarterdeck, stdout_json};

#[test]
fn blocks_are_listed_and_lifted() {
    let files = with_sessions();
    check(
        files.path(),
        &["blocks"],
        expect![[r#"
        exit 0
        --- stdout
        client    until                 since                 session  message
        fridtjof  2100-01-01T00:00:00Z  2026-01-13T09:00:00Z  ses_3    Please write to us instead.
        --- stderr
    "#]],
    );
    assert_eq!(
        stdout_json(&quarterdeck(files.path(), &["blocks", "list", "--format", "json"])),
        json!({ "blocks": [{
            "clientId": "fridtjof", "untilMs": 4_102_444_800_000_u64, "message": "Please write to us instead.",
            "sessionId": "ses_3", "atMs": NINE,
        }] })
    );
    check(
        files.path(),
        &["blocks", "lift", "fridtjof"],
        expect![[r#"
        exit 0
        --- stdout
        --- stderr
        fridtjof is no longer blocked
    "#]],
    );
    assert_eq!(
        last_line(&files),
        json!({ "event": "operator", "action": "lift_block", "clientId": "fridtjof" })
    );
    check(
        files.path(),
        &["blocks"],
        expect![[r#"
            exit 0
            --- stdout
            --- stderr
            no client is blocked
        "#]],
    );
    check(
        files.path(),
        &["blocks", "lift", "fridtjof"],
        expect![[r#"
            exit 1
            --- stdout
            --- stderr
            fridtjof is not blocked; `quarterdeck blocks` lists the clients that are
        "#]],
    );
}

#[test]
fn sessions_are_listed_and_ended() {
    let files = with_sessions();
    check(
        files.path(),
        &["sessions"],
        expect![[r#"
        exit 0
        --- stdout
        session  client    mode   active  turns  calls  began                 last seen
        ses_3    fridtjof  text   yes     0      0      2026-01-13T09:02:00Z  2026-01-13T09:02:00Z
        ses_2    hjalmar   voice  yes     0      0      2026-01-13T09:01:00Z  2026-01-13T09:01:00Z
        ses_1    fridtjof  text   yes     0      0      2026-01-13T09:00:00Z  2026-01-13T09:00:00Z
        --- stderr
    "#]],
    );
    check(
        files.path(),
        &["sessions", "end", "ses_1"],
        expect![[r#"
        exit 0
        --- stdout
        --- stderr
        ses_1 has ended
    "#]],
    );
    assert_eq!(
        last_line(&files),
        json!({ "event": "operator", "action": "end_session", "sessionId": "ses_1", "clientId": "fridtjof" })
    );
    check(
        files.path(),
        &["sessions", "list", "--client", "fridtjof", "--active"],
        expect![[r#"
        exit 0
        --- stdout
        session  client    mode  active  turns  calls  began                 last seen
        ses_3    fridtjof  text  yes     0      0      2026-01-13T09:02:00Z  2026-01-13T09:02:00Z
        --- stderr
    "#]],
    );
    check(
        files.path(),
        &["sessions", "end", "ses_1"],
        expect![[r#"
        exit 1
        --- stdout
        --- stderr
        ses_1 has ended already
    "#]],
    );
    check(
        files.path(),
        &["sessions", "end", "ses_9"],
        expect![[r#"
        exit 1
        --- stdout
        --- stderr
        there is no session ses_9; `quarterdeck sessions` lists them
    "#]],
    );
    check(
        files.path(),
        &["sessions", "--client", "unknown"],
        expect![[r#"
        exit 0
        --- stdout
        --- stderr
        there are no such sessions
    "#]],
    );
    let report = stdout_json(&quarterdeck(files.path(), &["sessions", "--format", "json"]));
    assert_eq!(report["sessions"][0]["id"], "ses_3");
    assert_eq!(report["sessions"][0]["seenMs"], NINE + 120_000);
}

#[test]
fn a_client_is_erased_but_for_the_block_and_the_trail() {
    let files = with_sessions();
    check(
        files.path(),
        &["clients"],
        expect![[r#"
        exit 0
        --- stdout
        client    sessions  active  last seen
        fridtjof  2         2       2026-01-13T09:02:00Z
        hjalmar   1         1       2026-01-13T09:01:00Z
        --- stderr
    "#]],
    );
    check(
        files.path(),
        &["clients", "erase", "fridtjof"],
        expect![[r#"
            exit 2
            --- stdout
            --- stderr
            error: erasing cannot be undone, and there is no terminal to confirm at; add `--yes` to erase
        "#]],
    );
    check(
        files.path(),
        &["clients", "erase", "fridtjof", "--yes"],
        expect![[r#"
            exit 0
            --- stdout
            --- stderr
            fridtjof was erased: 2 sessions, with calls, confirmations, values, images and rate limits (7 rows)
            a block, the audit trail, appointments in the calendar and earlier backups stay
        "#]],
    );
    assert_eq!(
        last_line(&files),
        json!({ "event": "operator", "action": "erase_client", "clientId": "fridtjof", "rows": 7, "sessionsLeft": 0 })
    );
    check(
        files.path(),
        &["clients"],
        expect![[r#"
        exit 0
        --- stdout
        client   sessions  active  last seen
        hjalmar  1         1       2026-01-13T09:01:00Z
        --- stderr
    "#]],
    );
    check(
        files.path(),
        &["clients", "erase", "fridtjof", "--yes"],
        expect![[r#"
            exit 1
            --- stdout
            --- stderr
            there is no data of fridtjof; `quarterdeck clients` lists the clients with sessions
        "#]],
    );
    assert!(
        stdout_json(&quarterdeck(files.path(), &["blocks", "--format", "json"]))["blocks"][0].is_object()
    );
    let store = store(&files);
    let kept = |key| run(store.get(Table::Values, key)).unwrap().is_some();
    assert!(!kept("fridtjof/word_count/last"));
    assert!(kept("fridtjof-2/word_count/last"), "a client with a longer name is another client");
}

#[test]
fn a_session_that_its_clients_list_has_lost_is_erased_too() {
    let files = with_sessions();
    let store = store(&files);
    // A session that is not among those the store lists for its client.
    run(store.commit(Commit::default().delete(Table::Sessions, "c/hjalmar/ses_2"))).unwrap();
    run(store.close()).unwrap();
    check(
        files.path(),
        &["clients", "erase", "hjalmar", "--yes"],
        expect![[r#"
            exit 0
            --- stdout
            --- stderr
            hjalmar was erased: 1 session, with calls, confirmations, values, images and rate limits (3 rows)
            a block, the audit trail, appointments in the calendar and earlier backups stay
        "#]],
    );
}

#[test]
fn what_is_not_an_id_reaches_nobodys_rows() {
    let files = with_sessions();
    check(
        files.path(),
        &["clients", "erase", "fridtjof/word_count", "--yes"],
        expect![[r#"
        exit 2
        --- stdout
        --- stderr
        error: invalid value 'fridtjof/word_count' for '<CLIENT>': an id has 1 to 128 letters, digits, `-`, `_`, `.`, `:` or `@`

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn while_another_process_is_at_work_nothing_is_changed() {
    let files = with_sessions();
    files.write(".quarterdeck/lock", "");
    let lock = fs::File::open(files.join(".quarterdeck/lock")).unwrap();
    lock.lock().unwrap();
    check(
        files.path(),
        &["blocks", "lift", "fridtjof"],
        expect![[r#"
            exit 2
            --- stdout
            --- stderr
            error: another quarterdeck uses .quarterdeck
            help: use the operators' page of the running server at /deck, or stop it and run this again
        "#]],
    );
    assert!(quarterdeck(files.path(), &["blocks"]).status.success(), "looking is always possible");
    assert!(quarterdeck(files.path(), &["backup", "copy"]).status.success(), "and so is a backup");
    drop(lock);
    assert!(quarterdeck(files.path(), &["blocks", "lift", "fridtjof"]).status.success());
}

#[test]
fn what_cannot_be_recorded_is_not_done() {
    let files = with_sessions();
    files.write(".quarterdeck/audit.jsonl", "not a line\n");
    let output = quarterdeck(files.path(), &["blocks", "lift", "fridtjof"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stdout_json(&quarterdeck(files.path(), &["blocks", "--format", "json"]))["blocks"][0].is_object()
    );
}

#[test]
fn a_trail_of_operators_is_whole() {
    let files = with_sessions();
    assert!(quarterdeck(files.path(), &["blocks", "lift", "fridtjof"]).status.success());
    assert!(quarterdeck(files.path(), &["sessions", "end", "ses_2"]).status.success());
    check(
        files.path(),
        &["audit", "verify"],
        expect![[r#"
        exit 0
        --- stdout
        .quarterdeck/audit.jsonl: 2 lines, whole
        --- stderr
    "#]],
    );
    let output = quarterdeck(files.path(), &["audit", "query", "--event", "operator", "--client", "hjalmar"]);
    assert!(String::from_utf8(output.stdout).unwrap().contains("end_session"));
}

#[test]
fn a_store_from_before_the_last_lines_does_not_make_the_trail_doubtful() {
    let files = with_sessions();
    assert!(quarterdeck(files.path(), &["sessions", "end", "ses_1"]).status.success());
    assert!(quarterdeck(files.path(), &["backup", "copy"]).status.success());
    assert!(quarterdeck(files.path(), &["sessions", "end", "ses_2"]).status.success());
    fs::copy(files.join("copy/quarterdeck.db"), files.join(".quarterdeck/quarterdeck.db")).unwrap();
    assert!(quarterdeck(files.path(), &["audit", "verify"]).status.success());
    assert!(quarterdeck(files.path(), &["sessions", "end", "ses_2"]).status.success());
    check(
        files.path(),
        &["audit", "verify"],
        expect![[r#"
        exit 0
        --- stdout
        .quarterdeck/audit.jsonl: 3 lines, whole
        --- stderr
    "#]],
    );
}

#[test]
fn state_is_readable_by_its_owner_alone() {
    let files = with_sessions();
    assert!(
        quarterdeck(files.path(), &["blocks", "lift", "fridtjof", "--data", ".quarterdeck"]).status.success()
    );
    assert!(quarterdeck(files.path(), &["backup", "copy"]).status.success());
    assert!(quarterdeck(files.path(), &["audit", "export", "--out", "trail.jsonl"]).status.success());
    for path in [
        ".quarterdeck",
        ".quarterdeck/quarterdeck.db",
        ".quarterdeck/audit.jsonl",
        ".quarterdeck/lock",
        "copy",
        "copy/quarterdeck.db",
        "copy/manifest.json",
        "trail.jsonl",
    ] {
        let mode = fs::metadata(files.join(path)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{path} has {mode:o}");
    }
}

const ICS: &str = "
    //- team.ics
    BEGIN:VCALENDAR
    VERSION:2.0
    BEGIN:VEVENT
    UID:ice@fram.no
    DTSTART:20260113T090000Z
    DTEND:20260113T100000Z
    SUMMARY:Watch the ice
    ATTENDEE:mailto:nansen@fram.no
    RRULE:FREQ=DAILY;COUNT=2
    END:VEVENT
    END:VCALENDAR
    //- half.ics
    BEGIN:VCALENDAR
    BEGIN:VEVENT
    UID:a
    DTSTART:20260115T090000Z
    DTEND:20260115T100000Z
    SUMMARY:Sound the depth
    END:VEVENT
    BEGIN:VEVENT
    UID:b
    SUMMARY:Without a time
    END:VEVENT
    END:VCALENDAR
";

#[test]
fn a_calendar_comes_in_is_listed_and_goes_out_again() {
    let files = tree(ICS);
    check(
        files.path(),
        &["calendar", "import", "team.ics", "--calendar", "team"],
        expect![[r#"
            exit 0
            --- stdout
            --- stderr
            1 event imported into team; those with the same UID were replaced
        "#]],
    );
    assert_eq!(
        last_line(&files),
        json!({ "event": "operator", "action": "import_calendar", "calendar": "team", "file": "team.ics", "events": 1 })
    );
    check(
        files.path(),
        &["calendar", "list", "--from", "2026-01-12", "--to", "2026-01-17"],
        expect![[r#"
            exit 0
            --- stdout
            start                 end                   calendar  summary        attendees
            2026-01-13T09:00:00Z  2026-01-13T10:00:00Z  team      Watch the ice  nansen@fram.no
            2026-01-14T09:00:00Z  2026-01-14T10:00:00Z  team      Watch the ice  nansen@fram.no
            --- stderr
        "#]],
    );
    check(
        files.path(),
        &["calendar", "list", "--from", "2026-02-12"],
        expect![[r#"
            exit 0
            --- stdout
            --- stderr
            no events between 2026-02-12T00:00:00Z and 2026-02-19T00:00:00Z
        "#]],
    );
    check(
        files.path(),
        &["calendar", "export", "--calendar", "team", "--out", "out.ics"],
        expect![[r#"
        exit 0
        --- stdout
        --- stderr
        1 event written to out.ics
    "#]],
    );
    let again = ["calendar", "import", "out.ics", "--calendar", "team", "--data", "again"];
    assert!(quarterdeck(files.path(), &again).status.success());
    let list = |data| {
        let arguments = ["calendar", "list", "--from", "2026-01-12", "--format", "json", "--data", data];
        stdout_json(&quarterdeck(files.path(), &arguments))
    };
    assert_eq!(list("again"), list(".quarterdeck"));
    assert_eq!(list("again")["events"].as_array().unwrap().len(), 2);
}

#[test]
fn what_an_import_leaves_out_is_told() {
    let files = tree(ICS);
    check(
        files.path(),
        &["calendar", "import", "half.ics"],
        expect![[r#"
            exit 1
            --- stdout
            --- stderr
            warning: the event "Without a time" of line 8 has no start
            1 event imported into primary; those with the same UID were replaced
        "#]],
    );
    check(
        files.path(),
        &["calendar", "list", "--from", "2026-01-12", "--calendar", "primary"],
        expect![[r#"
            exit 0
            --- stdout
            start                 end                   calendar  summary          attendees
            2026-01-15T09:00:00Z  2026-01-15T10:00:00Z  primary   Sound the depth
            --- stderr
        "#]],
    );
}

#[test]
fn an_import_that_cannot_be_makes_no_folder() {
    let files = tree(ICS);
    files.write("bad.ics", "BEGIN:VCALENDAR\nBEGIN:VEVENT\n");
    files.write("latin.ics", b"BEGIN:VCALENDAR\nX:\xe9\nEND:VCALENDAR\n");
    check(
        files.path(),
        &["calendar", "import", "team.ics", "--calendar", "fleet"],
        expect![[r#"
        exit 2
        --- stdout
        --- stderr
        error: there is no calendar "fleet"; there are primary, team, personal
    "#]],
    );
    check(
        files.path(),
        &["calendar", "import", "bad.ics"],
        expect![[r#"
        exit 2
        --- stdout
        --- stderr
        error: cannot import bad.ics: line 2: the VEVENT is never closed
    "#]],
    );
    check(
        files.path(),
        &["calendar", "import", "latin.ics"],
        expect![[r#"
        exit 2
        --- stdout
        --- stderr
        error: latin.ics is not UTF-8 text, as .ics files are
    "#]],
    );
    check(
        files.path(),
        &["calendar", "import", "gone.ics"],
        expect![[r#"
        exit 2
        --- stdout
        --- stderr
        error: cannot read gone.ics: No such file or directory (os error 2)
    "#]],
    );
    assert!(!files.join(".quarterdeck").exists());
}
