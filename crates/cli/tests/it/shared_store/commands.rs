//! What operators do with a store in PostgreSQL.

use serde_json::{Value, json};

use super::{NODE, database, on, printed, printed_on, sql};
use crate::data::{last_line, store, with_sessions};
use crate::small_site::Site;
use crate::terminal::{quarterdeck, stdout_json};

#[test]
fn every_row_is_read_and_damage_is_found() {
    let Some(url) = database() else { return };
    let files = with_sessions();
    let from = "sqlite:.quarterdeck/quarterdeck.db";
    printed_on(&url, files.path(), &["store", "copy", "--from", from, "--to", &url]);
    let check = || on(&url, files.path(), &["store", "check", "--format", "json"]);
    let sound = stdout_json(&check());
    assert_eq!((&sound["isSound"], &sound["schema"]), (&json!(true), &json!(1)), "{sound}");
    assert_eq!(sound["tables"]["blocks"]["rows"], 1, "{sound}");
    let of_file = stdout_json(&quarterdeck(files.path(), &["store", "check", "--format", "json"]));
    let rows = |found: &Value| found["rows"].as_u64().unwrap();
    assert_eq!(of_file["isSound"], true, "{of_file}");
    assert_eq!(rows(&sound), rows(&of_file) + 1, "and the end of the audit trail that tells of the copy");

    sql(&url, "UPDATE qd.rows SET value = '{' WHERE tab = 7");
    sql(&url, "ALTER SEQUENCE qd.version RESTART WITH 1");
    let output = check();
    assert_eq!(output.status.code(), Some(1));
    let found = stdout_json(&output);
    let faults = found["faults"].to_string();
    assert!(
        faults.contains("blocks/fridtjof is not JSON") && faults.contains("is behind that of a row"),
        "{found}"
    );
    assert_eq!(found["faultCount"], 2, "{found}");
    let text = printed(&on(&url, files.path(), &["store", "check"]));
    assert!(text.contains("2 faults\nhelp: restore a backup"), "{text}");
}

#[test]
fn vacuum_removes_what_has_expired_and_is_recorded() {
    let Some(url) = database() else { return };
    let files = with_sessions();
    printed_on(&url, files.path(), &["store", "migrate"]);
    sql(&url, "INSERT INTO qd.rows VALUES (9, 'a/b/c', '1', nextval('qd.version'), 1)");
    let text = printed_on(&url, files.path(), &["store", "vacuum"]);
    assert!(text.contains("vacuumed and analysed; 1 expired row removed first"), "{text}");
    assert_eq!(last_line(&files), json!({ "event": "operator", "action": "vacuum_store", "expiredRows": 1 }));
    assert_eq!(sql(&url, "SELECT count(*) FROM qd.rows WHERE tab = 9"), "0");
}

#[test]
fn vacuum_rewrites_a_file() {
    let files = with_sessions();
    let output = quarterdeck(files.path(), &["store", "vacuum"]);
    assert!(printed(&output).contains("bytes and has"), "{}", printed(&output));
    let line = last_line(&files);
    assert_eq!((&line["action"], line["expiredRows"].as_u64()), (&json!("vacuum_store"), Some(9)), "{line}");
    assert!(
        stdout_json(&quarterdeck(files.path(), &["store", "check", "--format", "json"]))["isSound"]
            .as_bool()
            .unwrap()
    );
}

#[test]
fn schema_is_made_by_the_operator_where_servers_must_not() {
    let Some(url) = database() else { return };
    let site = Site::new();
    let serve = || {
        let mut command = site.serve(&[]);
        command.env("QUARTERDECK_STORE__URL", &url).env("QUARTERDECK_CLUSTER__NODE", NODE);
        command.env("QUARTERDECK_STORE__MIGRATE", "manual");
        command
    };
    let refused = crate::small_site::ended_at_once(&mut serve());
    let text = printed(&refused);
    assert!(
        text.contains("holds no store yet") && text.contains("run `quarterdeck store migrate`"),
        "{text}"
    );
    assert_eq!(sql(&url, "SELECT to_regnamespace('qd') IS NULL"), "t", "nothing was made");
    let data = site.data();
    let migrate = ["store", "migrate", "--data", data.to_str().unwrap()];
    assert!(printed_on(&url, site.files.path(), &migrate).contains("was made, with schema 1"));
    assert!(printed_on(&url, site.files.path(), &migrate).contains("has schema 1 already"));
    let trail = std::fs::read_to_string(data.join("audit.jsonl")).unwrap();
    let line: Value = serde_json::from_str(trail.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&line["action"], &line["before"], &line["after"]),
        (&json!("migrate_store"), &json!(0), &json!(1))
    );
    let server = crate::serve::Server::begin(&mut serve());
    assert_eq!(server.get("/readyz").0, 200);
}

#[test]
fn commands_that_read_make_no_schema() {
    let Some(url) = database() else { return };
    let files = with_sessions();
    for arguments in [&["sessions"][..], &["blocks"], &["clients"], &["store", "list"], &["backup", "monday"]]
    {
        let output = on(&url, files.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let text = printed(&output);
        assert!(
            text.contains("holds no store yet") && text.contains("or start a server"),
            "{arguments:?}: {text}"
        );
    }
    assert_eq!(sql(&url, "SELECT to_regnamespace('qd') IS NULL"), "t", "nothing was made");
    drop(store(&files));
}
