//! Servers on a store in PostgreSQL.

use std::io::BufRead;
use std::process::Command;
use std::time::Duration;

use quarterdeck_testkit::{PostgresServer, PostgresVersion};
use serde_json::{Value, json};

use super::{NODE, database, on, printed, printed_on};
use crate::serve::Server;
use crate::small_site::{Site, ended_at_once};
use crate::terminal::stdout_json;

fn serve(site: &Site, url: &str, node: &str) -> Command {
    let mut command = site.serve(&[]);
    command.env("QUARTERDECK_STORE__URL", url).env("QUARTERDECK_CLUSTER__NODE", node);
    command
}

#[test]
fn operators_change_the_store_while_the_server_runs_and_it_is_recorded() {
    let Some(url) = database() else { return };
    let site = Site::new();
    let mut server = Server::begin(&mut serve(&site, &url, NODE));
    let (status, _, answer) = server.ask("POST", "/api/chat", "", r#"{"message":"Hello there"}"#);
    assert_eq!(status, 200, "{answer}");
    let mut line = String::new();
    let mut rest = server.take_rest();
    while !line.trim_start().starts_with("node ") {
        line.clear();
        assert!(rest.read_line(&mut line).unwrap() > 0, "no line tells of the node");
    }
    assert!(line.contains("fram, on postgres://qd@127.0.0.1:"), "{line}");

    let data = site.data();
    let run = |arguments: &[&str]| {
        on(&url, site.files.path(), &[arguments, &["--data", data.to_str().unwrap()]].concat())
    };
    let sessions = stdout_json(&run(&["sessions", "--format", "json"]));
    let session = sessions["sessions"][0]["id"].as_str().unwrap_or_else(|| panic!("{sessions}")).to_owned();
    let ended = run(&["sessions", "end", &session]);
    assert_eq!(ended.status.code(), Some(0), "{}", printed(&ended));
    let trail = std::fs::read_to_string(data.join("audit-operator.jsonl")).unwrap();
    let line: Value = serde_json::from_str(trail.lines().last().unwrap()).unwrap();
    assert_eq!((&line["action"], &line["sessionId"]), (&json!("end_session"), &json!(session)), "{line}");
    for arguments in [
        &["store", "check"][..],
        &["store", "vacuum"],
        &["clients"],
        &["store", "list"],
        &["backup", "monday"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", printed(&output));
    }
    assert_eq!(server.get("/readyz").0, 200);
    server.signal("-TERM");
    assert!(server.child.wait().unwrap().success());
    let verified = printed(&run(&["audit", "verify"]));
    assert!(verified.contains("whole"), "{verified}");
    let listed = stdout_json(&on(
        "sqlite:monday/quarterdeck.db",
        site.files.path(),
        &["sessions", "--format", "json"],
    ));
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "the backup is a store of its own: {listed}");
}

#[test]
fn client_of_one_node_is_known_on_the_other_and_can_be_erased_while_both_run() {
    let Some(url) = database() else { return };
    let (one, other) = (Site::new(), Site::new());
    let fram = Server::begin(&mut serve(&one, &url, "fram"));
    let gjoa = Server::begin(&mut serve(&other, &url, "gjoa"));
    let (status, headers, _) = fram.ask("POST", "/api/chat", "", r#"{"message":"Hello there"}"#);
    assert_eq!(status, 200);
    let cookie = headers.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("cookie: {}\r\n", cookie.split(';').next().unwrap());
    let sessions = |server: &Server| {
        let (status, _, body) = server.ask("GET", "/api/sessions", &cookie, "");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str::<Value>(&body).unwrap()["sessions"].as_array().unwrap().len()
    };
    assert_eq!((sessions(&fram), sessions(&gjoa)), (1, 1));
    let data = one.data();
    let run = |arguments: &[&str]| {
        on(&url, one.files.path(), &[arguments, &["--data", data.to_str().unwrap()]].concat())
    };
    let client =
        stdout_json(&run(&["clients", "--format", "json"]))["clients"][0]["id"].as_str().unwrap().to_owned();
    let erased = run(&["clients", "erase", &client, "--yes"]);
    assert_eq!(erased.status.code(), Some(0), "{}", printed(&erased));
    assert_eq!((sessions(&fram), sessions(&gjoa)), (0, 0));
}

#[test]
fn cookies_from_before_the_store_was_shared_stay_valid() {
    let Some(url) = database() else { return };
    let site = Site::used();
    let secret = std::fs::read_to_string(site.data().join("cookie_secret")).unwrap();
    let file = format!("sqlite://{}", site.data().join("quarterdeck.db").display());
    let data = site.data();
    printed_on(
        &url,
        site.files.path(),
        &["store", "copy", "--from", &file, "--to", &url, "--data", data.to_str().unwrap()],
    );
    let server = Server::begin(&mut serve(&site, &url, NODE));
    assert_eq!(server.get("/readyz").0, 200);
    let stored = super::sql(&url, "SELECT value FROM qd.rows WHERE tab = 15 AND key = 'secret/cookie'");
    assert_eq!(serde_json::from_str::<Value>(&stored).unwrap()["secret"], secret.trim());
}

#[test]
fn a_node_that_restarts_finds_what_it_had() {
    let Some(url) = database() else { return };
    let site = Site::new();
    let first = Server::begin(&mut serve(&site, &url, NODE));
    let (_, headers, answer) = first.ask("POST", "/api/chat", "", r#"{"message":"Hello there"}"#);
    assert!(headers.contains("200"), "{headers} {answer}");
    first.signal("-TERM");
    assert_eq!(first.ended().0, Some(0));
    let second = Server::begin(&mut serve(&site, &url, NODE));
    assert_eq!(second.get("/readyz").0, 200);
    let data = site.data();
    let listed = printed_on(&url, site.files.path(), &["sessions", "--data", data.to_str().unwrap()]);
    assert!(listed.contains("text"), "{listed}");
}

#[test]
fn empty_database_beside_a_trail_is_refused() {
    let Some(url) = database() else { return };
    let site = Site::used();
    let output = ended_at_once(&mut serve(&site, &url, NODE));
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    for words in ["knows nothing of", "quarterdeck store copy", "cluster.node", "--new-store"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let accepted = Server::begin(serve(&site, &url, NODE).arg("--new-store"));
    assert!(
        accepted.printed.iter().any(|line| line.contains("a new store is begun in postgres://")),
        "{:?}",
        accepted.printed
    );
    assert_eq!(accepted.get("/readyz").0, 200);
}

#[test]
fn two_nodes_on_one_file_are_refused_wherever_it_is() {
    let site = Site::new();
    let file = format!("sqlite://{}", site.files.join("elsewhere.db").display());
    let first = Server::begin(site.serve(&[]).env("QUARTERDECK_STORE__URL", &file));
    let other = Site::new();
    let output = ended_at_once(other.serve(&[]).env("QUARTERDECK_STORE__URL", &file));
    let text = printed(&output);
    assert!(text.contains("another quarterdeck uses"), "{text}");
    assert_eq!(first.get("/readyz").0, 200);
    assert!(!site.data().join("quarterdeck.db").exists());
}

#[test]
fn a_start_without_the_database_waits_for_it_and_then_says_what_to_do() {
    let Some(server) = PostgresServer::start(PostgresVersion::V18) else { return };
    let url = server.create_database().replace("qd@", "qd:hunter2@");
    server.stop();
    let site = Site::new();
    let output = ended_at_once(serve(&site, &url, NODE).env("QUARTERDECK_STORE__WAIT_SECONDS", "0"));
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.contains("no connection to postgres://127.0.0.1:") && text.contains("check the address"),
        "{text}"
    );
    assert!(!text.contains("hunter2"), "{text}");
    let wrong = ended_at_once(
        serve(&site, "postgres://qd@127.0.0.1:1/none", NODE).env("QUARTERDECK_STORE__WAIT_SECONDS", "0"),
    );
    assert!(printed(&wrong).contains("no connection to"), "{}", printed(&wrong));

    let starting = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(3));
        server.restart();
        server
    });
    let node = Server::begin(serve(&site, &url, NODE).env("QUARTERDECK_STORE__WAIT_SECONDS", "60"));
    let database = starting.join().unwrap();
    assert_eq!(node.get("/readyz").0, 200);
    drop(node);
    drop(database);
}
