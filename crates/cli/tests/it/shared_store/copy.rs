//! From a file to PostgreSQL and back.

use std::path::Path;

use serde_json::Value;

use super::{database, on, printed, printed_on, sql};
use crate::data::with_sessions;
use crate::terminal::{quarterdeck, stdout_json};

const FILE: &str = "sqlite:.quarterdeck/quarterdeck.db";

/// What operators see of a store, without what tells one store from another.
fn seen(run: impl Fn(&[&str]) -> std::process::Output) -> Vec<Value> {
    let commands: [&[&str]; 4] = [
        &["sessions", "--format", "json"],
        &["blocks", "--format", "json"],
        &["clients", "--format", "json"],
        &["store", "list", "--json"],
    ];
    commands.into_iter().map(|arguments| stdout_json(&run(arguments))).collect()
}

fn digest(text: &str) -> &str {
    text.split("SHA-256 ").nth(1).unwrap_or_else(|| panic!("{text}")).trim()
}

#[test]
fn store_is_copied_to_postgresql_and_back_with_all_that_it_holds() {
    let Some(url) = database() else { return };
    let files = with_sessions();
    // So that there is a trail, and the store knows it.
    assert!(quarterdeck(files.path(), &["sessions", "end", "ses_1"]).status.success());
    let before = seen(|arguments| quarterdeck(files.path(), arguments));
    let there = quarterdeck(files.path(), &["store", "copy", "--from", FILE, "--to", &url]);
    assert_eq!(there.status.code(), Some(0), "{}", printed(&there));
    let there = printed(&there);
    assert!(there.contains("read back and compared"), "{there}");
    assert_eq!(seen(|arguments| on(&url, files.path(), arguments)), before);

    // The trail that the file knew as `local` is the node's now, and whole.
    printed_on(&url, files.path(), &["blocks", "lift", "fridtjof"]);
    assert_eq!(
        sql(&url, "SELECT string_agg(convert_from(key, 'UTF8'), ' ') FROM qd.rows WHERE tab = 12"),
        "fram"
    );
    let verified = printed_on(&url, files.path(), &["audit", "verify"]);
    assert!(verified.contains("3 lines, whole"), "{verified}");

    let back = printed_on(&url, files.path(), &["store", "copy", "--from", &url, "--to", "sqlite:back.db"]);
    assert_ne!(digest(&there), digest(&back), "a block was lifted between");
    let of_database = seen(|arguments| on(&url, files.path(), arguments));
    assert_eq!(seen(|arguments| on("sqlite:back.db", files.path(), arguments)), of_database);
    let verified = printed_on("sqlite:back.db", files.path(), &["blocks"]);
    assert!(verified.contains("no client is blocked"), "{verified}");
}

#[test]
fn expiry_is_copied_and_the_digest_is_that_of_the_rows() {
    let Some(url) = database() else { return };
    let files = with_sessions();
    let copied =
        |from: &str, to: &str| printed_on(&url, files.path(), &["store", "copy", "--from", from, "--to", to]);
    let first = copied(FILE, "sqlite:one.db");
    let second = copied("sqlite:one.db", "sqlite:two.db");
    assert_eq!(digest(&first), digest(&second));
    let third = copied("sqlite:two.db", &url);
    assert_eq!(digest(&second), digest(&third));
    let in_file = rows_with_expiry(&files.join("one.db"));
    assert!(in_file > 0);
    assert_eq!(sql(&url, "SELECT count(*) FROM qd.rows WHERE expires_ms IS NOT NULL"), in_file.to_string());
}

fn rows_with_expiry(file: &Path) -> usize {
    let snapshot = quarterdeck_store::SqliteSnapshot::open(file).unwrap();
    let rows = quarterdeck_contracts::Table::ALL
        .into_iter()
        .flat_map(|table| snapshot.rows(table, None, 10_000).unwrap());
    rows.filter(|row| row.expires_ms.is_some()).count()
}

#[test]
fn copy_refuses_a_target_that_holds_rows_and_a_source_in_use() {
    let Some(url) = database() else { return };
    let files = with_sessions();
    let copy = |from: &str, to: &str| on(&url, files.path(), &["store", "copy", "--from", from, "--to", to]);
    assert!(copy(FILE, &url).status.success());
    for (from, to, expected) in [
        (FILE, url.as_str(), "is not empty: there are rows in"),
        (FILE, FILE, "--from and --to are the same store"),
        ("sqlite:none.db", "sqlite:new.db", "none.db"),
        (
            "mysql://qd:hunter2@db/qd",
            "sqlite:new.db",
            "--from is an address of another kind; it takes postgres://",
        ),
        (
            FILE,
            "postgres://qd:hunter2@db/qd?sslmode=prefer",
            "--to is a URL that cannot be used: sslmode=prefer",
        ),
    ] {
        let output = copy(from, to);
        let text = printed(&output);
        assert_eq!(output.status.code(), Some(2), "{from} {to}: {text}");
        assert!(text.contains(expected) && !text.contains("hunter2"), "{from} {to}: {text}");
    }
    let lock = std::fs::File::create(files.join(".quarterdeck/lock")).unwrap();
    lock.lock().unwrap();
    let text = printed(&copy(FILE, "sqlite:new.db"));
    assert!(text.contains("another quarterdeck uses"), "{text}");
    assert!(!files.join("new.db").exists(), "nothing was made");
}

#[test]
fn copy_from_a_database_on_which_a_node_runs_is_refused() {
    let Some(url) = database() else { return };
    let site = crate::small_site::Site::new();
    let mut command = site.serve(&[]);
    let server = crate::serve::Server::begin(
        command.env("QUARTERDECK_STORE__URL", &url).env("QUARTERDECK_CLUSTER__NODE", "gjoa"),
    );
    let data = site.data();
    let copy = ["store", "copy", "--from", &url, "--to", "sqlite:new.db", "--data", data.to_str().unwrap()];
    let text = printed(&quarterdeck(site.files.path(), &copy));
    assert!(text.contains("the node gjoa is running on"), "{text}");
    server.signal("-TERM");
    assert_eq!(server.ended().0, Some(0));
    let text = printed(&quarterdeck(site.files.path(), &copy));
    assert!(text.contains("read back and compared"), "{text}");
}
