//! Whatever is done to a trail, the deck and the terminal say the same about it, and say it is not whole.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::Command;

use quarterdeck_contracts::sha256;
use serde_json::Value;

use crate::serve::Server;
use crate::small_site::Site;

/// A change of the trail at a path, given its text.
type Attack = fn(&Path, &str);

const ATTACKS: [(&str, Attack); 11] = [
    ("cut off the last line", |path, text| cut(path, text.rfind("{\"seq\"").unwrap())),
    ("cut in the middle of a line", |path, text| cut(path, text.len() - 30)),
    ("empty it", |path, _| cut(path, 0)),
    ("delete it", |path, _| fs::remove_file(path).unwrap()),
    ("put an older copy in its place", |path, text| replace(path, &first_lines(text, 1))),
    ("change one byte", |path, text| {
        overwrite(path, &text.replacen("\"mode\":\"text\"", "\"mode\":\"tent\"", 1))
    }),
    ("swap two lines", |path, text| overwrite(path, &swapped(text))),
    ("take out a line in the middle", |path, text| replace(path, &without_second(text))),
    ("append a line that is none", |path, text| overwrite(path, &format!("{text}a stray line\n"))),
    ("append a line that does not follow", |path, text| {
        overwrite(path, &format!("{text}{}\n", forged(text, 7)))
    }),
    ("append a line that follows", |path, text| overwrite(path, &format!("{text}{}\n", forged(text, 1)))),
];

fn cut(path: &Path, length: usize) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(length as u64).unwrap();
}

/// Other bytes in the same file.
fn overwrite(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
}

/// Another file under the same name.
fn replace(path: &Path, text: &str) {
    let other = path.with_extension("other");
    fs::write(&other, text).unwrap();
    fs::rename(other, path).unwrap();
}

fn first_lines(text: &str, lines: usize) -> String {
    text.split_inclusive('\n').take(lines).collect()
}

fn swapped(text: &str) -> String {
    let mut lines: Vec<_> = text.split_inclusive('\n').collect();
    lines.swap(0, 1);
    lines.concat()
}

fn without_second(text: &str) -> String {
    let mut lines: Vec<_> = text.split_inclusive('\n').collect();
    lines.remove(1);
    lines.concat()
}

/// A line with a sound hash that claims to be so many after the last one.
fn forged(text: &str, after: u64) -> String {
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let (seq, prev) = (last["seq"].as_u64().unwrap() + after, last["hash"].as_str().unwrap());
    let content = format!("{{\"seq\":{seq},\"prev\":\"{prev}\",\"event\":\"forged\"");
    format!("{content},\"hash\":\"{}\"}}", sha256(content.as_bytes()))
}

fn ask_terminal(site: &Site) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_quarterdeck"))
        .current_dir(site.files.path())
        .args(["audit", "verify", "--format", "json", "--data"])
        .arg(site.data())
        .output()
        .unwrap();
    let verdict: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(if verdict["whole"] == true { 0 } else { 1 }));
    verdict
}

fn ask_deck(server: &Server) -> Value {
    let (status, _, body) = server.ask("POST", "/api/deck/audit/verify", "", "");
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// Both verdicts, which must be one.
fn ask_both(site: &Site, server: &Server, what: &str) -> Value {
    let (deck, terminal) = (ask_deck(server), ask_terminal(site));
    assert_eq!(deck["isWhole"], terminal["whole"], "{what}: {deck} {terminal}");
    for name in ["lines", "unconfirmed", "fault"] {
        assert_eq!(deck[name], terminal[name], "{what}: {deck} {terminal}");
    }
    deck
}

fn assert_fault_reported(verdict: &Value, what: &str) {
    assert_eq!(verdict["isWhole"], false, "{what}: {verdict}");
    let fault = verdict["fault"].as_str().unwrap();
    assert!(fault.contains("line ") && fault.contains(char::is_numeric), "the place: {what}: {fault}");
}

#[test]
fn deck_and_terminal_agree_on_a_trail_that_is_changed_under_a_running_server() {
    for (what, attack) in ATTACKS {
        let site = Site::used();
        let server = site.start(&[]);
        assert_eq!(ask_both(&site, &server, what)["isWhole"], true, "{what}");
        let trail = site.data().join("audit.jsonl");
        attack(&trail, &fs::read_to_string(&trail).unwrap());
        assert_fault_reported(&ask_both(&site, &server, what), what);
        // It goes on, and stays found out.
        let (status, _, answer) = server.ask("POST", "/api/chat", "", r#"{"message":"Hello again"}"#);
        assert_eq!(status, 200, "{answer}");
        assert_fault_reported(&ask_both(&site, &server, what), what);
        server.signal("-TERM");
        assert_eq!(server.ended().0, Some(0), "{what}");
        assert_eq!(ask_terminal(&site)["whole"], false, "{what}");
    }
}

#[test]
fn deck_and_terminal_agree_on_a_trail_that_is_changed_between_two_starts() {
    for (what, attack) in ATTACKS {
        let site = Site::used();
        let trail = site.data().join("audit.jsonl");
        attack(&trail, &fs::read_to_string(&trail).unwrap());
        let before = ask_terminal(&site);
        if what == "append a line that follows" {
            // A crash leaves such lines as well; they are counted, and not vouched for.
            assert_eq!((&before["whole"], &before["unconfirmed"]), (&true.into(), &1.into()));
            ask_both(&site, &site.start(&[]), what);
            continue;
        }
        assert_eq!(before["whole"], false, "{what}: {before}");
        if what.starts_with("append a line that is none") {
            let bytes = fs::read(&trail).unwrap();
            let printed = site.refused(&[]);
            assert!(
                printed.contains("is not a line of the audit trail") && printed.contains("move it away"),
                "{printed}"
            );
            assert_eq!(fs::read(&trail).unwrap(), bytes, "{what}");
            continue;
        }
        let server = site.start(&[]);
        assert_fault_reported(&ask_both(&site, &server, what), what);
    }
}

#[test]
fn a_foreign_file_in_the_place_of_the_trail_keeps_every_byte() {
    let site = Site::used();
    let trail = site.data().join("audit.jsonl");
    let ours = fs::read(&trail).unwrap();
    let mut ours_with_garbage = ours.clone();
    ours_with_garbage.extend(b"\x00\xffgarbage\n\x01\x02 no end");
    for foreign in [
        b"\x7fELF\x02\x01\x01\x00\x00\x00 a program".to_vec(),
        b"a letter\nwith a second line".to_vec(),
        b"{\"level\":\"info\",\"msg\":\"another program's log\"}\n".to_vec(),
        vec![b'x'; 17 << 20],
        ours_with_garbage,
    ] {
        fs::write(&trail, &foreign).unwrap();
        let before = site.kept();
        let printed = site.refused(&[]);
        assert!(
            printed.contains("is not a line of the audit trail") && printed.contains("left as it was"),
            "{printed}"
        );
        assert!(site.kept() == before, "nothing has changed");
    }
}
