//! The audit trails of several nodes.

use std::path::Path;
use std::process::Output;

use quarterdeck_postgres::{Database, PostgresSettings};
use quarterdeck_store::PostgresStore;
use quarterdeck_testkit::tree;

use super::{database, printed, sql};
use crate::terminal::{command, stdout_json};

/// Runs a command as one of several nodes, each with a folder of its own.
fn as_node(url: &str, node: &str, folder: &Path, keep: bool, arguments: &[&str]) -> Output {
    let mut command = command(folder);
    command.env("QUARTERDECK_STORE__URL", url).env("QUARTERDECK_CLUSTER__NODE", node);
    command.env("QUARTERDECK_AUDIT__KEEP_IN_STORE", keep.to_string());
    command.args(arguments).output().unwrap()
}

/// Makes the store without a node's line about it.
fn make_schema(url: &str) {
    let database = Database::connect(PostgresSettings::from_url(url).unwrap()).unwrap();
    drop(PostgresStore::open(database).unwrap());
}

/// Has a node write a line.
fn write_line(url: &str, node: &str, folder: &Path, keep: bool) {
    let output = as_node(url, node, folder, keep, &["store", "vacuum"]);
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
}

#[test]
fn one_command_verifies_the_trails_of_all_nodes() {
    let Some(url) = database() else { return };
    make_schema(&url);
    let [fram, maud, gjoa] = [tree(""), tree(""), tree("")];
    write_line(&url, "fram", fram.path(), false);
    write_line(&url, "maud", maud.path(), false);
    write_line(&url, "maud", maud.path(), false);
    write_line(&url, "gjoa", gjoa.path(), true);
    let verify = |more: &[&str]| {
        let arguments: Vec<&str> = ["audit", "verify"].iter().chain(more).copied().collect();
        as_node(&url, "fram", fram.path(), false, &arguments)
    };
    let output = verify(&[]);
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("fram: .quarterdeck/audit.jsonl: 1 line, whole\n"), "{text}");
    assert!(text.contains("gjoa: in the store: 1 line, whole\n"), "{text}");
    assert!(
        text.contains("maud: not seen; the store knows 2 lines of it") && text.contains("--file maud=FILE"),
        "{text}"
    );
    let trail = maud.join(".quarterdeck/audit.jsonl");
    let file = format!("maud={}", trail.display());
    let found = stdout_json(&verify(&["--file", &file, "--format", "json"]));
    let lines: Vec<_> =
        found["nodes"].as_array().unwrap().iter().map(|node| node["lines"].as_u64()).collect();
    assert_eq!((&found["whole"], lines), (&true.into(), vec![Some(1), Some(1), Some(2)]), "{found}");

    // A fault in any of them is a fault.
    sql(
        &url,
        "UPDATE qd.rows SET value = replace(value, 'vacuum_store', 'vacuum_stare') WHERE key LIKE '~lines/gjoa/%'",
    );
    let output = verify(&[]);
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
    assert!(
        printed(&output).contains("gjoa: in the store: line 1: it is not a line"),
        "{}",
        printed(&output)
    );
    let output = verify(&["--file", "maud"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(printed(&output).contains("as in `two=two.jsonl`"), "{}", printed(&output));
}
