//! A store that is deleted, emptied, damaged or another one: it is said, and nothing is made in its place.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::small_site::Site;
use crate::terminal::quarterdeck;

type Loss = fn(&Path);

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

const LOSSES: [(&str, Loss, &str); 8] = [
    ("deleted", |path| fs::remove_file(path).unwrap(), "is missing"),
    ("emptied", |path| fs::write(path, "").unwrap(), "is empty"),
    ("cut to half", |path| change(path, |bytes| bytes.truncate(bytes.len() / 2)), "is damaged"),
    ("cut in a page", |path| change(path, |bytes| bytes.truncate(bytes.len() - 100)), "is damaged"),
    ("first bytes damaged", |path| change(path, |bytes| bytes[..16].fill(0)), "is not a Quarterdeck store"),
    ("header damaged", |path| change(path, |bytes| bytes[16..100].fill(0xff)), "damaged"),
    ("pages damaged", |path| change(path, |bytes| bytes[4_096..].fill(0xa5)), "is damaged"),
    ("replaced by a new one", replace_by_new, "knows nothing of"),
];

fn replace_by_new(path: &Path) {
    fs::remove_file(path).unwrap();
    drop(quarterdeck_store::SqliteStore::open(path).unwrap());
}

#[test]
fn a_store_that_was_lost_is_said_and_nothing_is_made_in_its_place() {
    for (what, lose, expected) in LOSSES {
        let site = Site::used();
        lose(&site.data().join("quarterdeck.db"));
        let before = site.kept();
        let printed = site.refused(&[]);
        assert!(printed.contains(expected), "{what}: {printed}");
        assert!(
            printed.contains("put the store back from a backup") && printed.contains("--new-store"),
            "{what}: {printed}"
        );
        assert!(site.kept() == before, "{what}: nothing has changed");
        // Operators' commands do not make one either.
        let data = site.data();
        let lift =
            quarterdeck(site.files.path(), &["blocks", "lift", "fridtjof", "--data", data.to_str().unwrap()]);
        assert_eq!(lift.status.code(), Some(2), "{what}");
        let list = quarterdeck(site.files.path(), &["sessions", "--data", data.to_str().unwrap()]);
        assert_eq!(list.status.code() == Some(0), what == "replaced by a new one", "{what}");
        assert!(site.kept() == before, "{what}: nothing has changed");
    }
}

#[test]
fn an_operator_who_accepts_the_loss_keeps_what_is_left_and_the_trail_says_so() {
    for (what, lose, _) in LOSSES {
        let site = Site::used();
        let store = site.data().join("quarterdeck.db");
        lose(&store);
        let left = fs::read(&store).ok();
        let server = site.start(&["--new-store"]);
        assert!(
            server.printed.iter().any(|line| line.contains("a new store is begun")),
            "{what}: {:?}",
            server.printed
        );
        assert_eq!(server.get("/readyz").0, 200, "{what}");
        let (_, _, verdict) = server.ask("POST", "/api/deck/audit/verify", "", "");
        let verdict: Value = serde_json::from_str(&verdict).unwrap();
        assert_eq!(verdict["isWhole"], false, "{what}: {verdict}");
        assert!(verdict["fault"].as_str().unwrap().contains("a new store was begun"), "{what}: {verdict}");
        server.signal("-TERM");
        assert_eq!(server.ended().0, Some(0));
        assert_eq!(fs::read(site.data().join("quarterdeck.db.before-1")).ok(), left, "{what}");
        // From then on it is a store like any other, and cannot be thrown away by a flag that was left in a unit.
        let before = site.kept();
        let printed = site.refused(&["--new-store"]);
        assert!(printed.contains("is there and sound"), "{what}: {printed}");
        assert_eq!(site.kept().keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
        drop(site.start(&[]));
    }
}

#[test]
fn a_store_that_is_gone_without_a_trail_is_at_least_said() {
    let site = Site::used();
    fs::remove_file(site.data().join("quarterdeck.db")).unwrap();
    fs::remove_file(site.data().join("audit.jsonl")).unwrap();
    let server = site.start(&[]);
    let printed = server.printed.join("\n");
    assert!(
        printed.contains("warning: a new store is made")
            && printed.contains("registry.json and cookie_secret"),
        "{printed}"
    );
    let first = Site::new();
    assert!(!first.start(&[]).printed.join("\n").contains("warning"), "a first start has nothing to warn of");
}

#[test]
fn a_store_that_is_deleted_under_a_running_server_makes_it_unready() {
    let site = Site::used();
    let server = site.start(&[]);
    assert_eq!(server.get("/readyz").0, 200);
    fs::remove_file(site.data().join("quarterdeck.db")).unwrap();
    let (status, body) = server.get("/readyz");
    assert_eq!(status, 503, "{body}");
    assert!(body.contains("\"storeWritable\":false"), "{body}");
}

#[test]
fn a_store_from_a_backup_serves_and_says_that_the_trail_is_ahead() {
    let site = Site::used();
    let store = site.data().join("quarterdeck.db");
    let backup = fs::read(&store).unwrap();
    let server = site.start(&[]);
    assert_eq!(server.ask("POST", "/api/chat", "", r#"{"message":"Hello again"}"#).0, 200);
    server.signal("-TERM");
    server.ended();
    fs::write(&store, backup).unwrap();
    let server = site.start(&[]);
    assert!(
        server.printed.join("\n").contains("the audit trail is ahead of the store"),
        "{:?}",
        server.printed
    );
    assert_eq!(server.get("/readyz").0, 200);
}
