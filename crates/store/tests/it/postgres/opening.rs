//! Schemas: made once, brought up to date, newer than we are.

use std::thread;

use quarterdeck_contracts::{Commit, Store, Table};
use quarterdeck_postgres::{Database, PostgresSettings};
use quarterdeck_store::PostgresStore;
use quarterdeck_store::postgres::OpenError;
use quarterdeck_testkit::{PostgresServer, PostgresVersion, block_on};
use serde_json::json;

use super::support::{database_of, open};

fn try_open(url: &str) -> Result<PostgresStore, OpenError> {
    PostgresStore::open(Database::connect(PostgresSettings::from_url(url).unwrap()).unwrap())
}

#[test]
fn nodes_that_start_together_make_the_schema_once() {
    let Some(server) = PostgresServer::shared(PostgresVersion::V18) else { return };
    let url = server.create_database();
    thread::scope(|scope| {
        for n in 0..6 {
            let url = &url;
            scope.spawn(move || {
                let commit = Commit::default().put(Table::Values, format!("{n}"), json!(n));
                block_on(open(url).commit(commit)).unwrap();
            });
        }
    });
    assert_eq!(server.execute(database_of(&url), "SELECT count(*) FROM qd.steps"), "1");
    assert_eq!(server.execute(database_of(&url), "SELECT count(*) FROM qd.rows"), "6");
}

/// The next version adds a step; a later one takes away what this version uses.
#[test]
fn newer_schema_is_used_while_it_serves_this_version_and_refused_afterwards() {
    let Some(server) = PostgresServer::shared(PostgresVersion::V16) else { return };
    let url = server.create_database();
    let old = open(&url);
    let name = database_of(&url);
    server.execute(name, "ALTER TABLE qd.rows ADD COLUMN more text; INSERT INTO qd.steps VALUES (2, 1)");
    let put = |key: &str| Commit::default().put(Table::Values, key, json!(1));
    block_on(old.commit(put("running"))).unwrap();
    block_on(open(&url).commit(put("started"))).unwrap();
    server.execute(name, "INSERT INTO qd.steps VALUES (3, 2)");
    let refused = try_open(&url).map(drop).unwrap_err().to_string();
    assert!(refused.contains("has schema 3") && refused.contains("use the newer version"), "{refused}");
    assert!(refused.contains(name) && !refused.contains("qd@"), "{refused}");
}

#[test]
fn database_that_cannot_be_used_is_told_with_a_way_out() {
    let Some(server) = PostgresServer::shared(PostgresVersion::V18) else { return };
    let missing = try_open(&server.url("missing")).map(drop).unwrap_err().to_string();
    assert!(missing.contains("\"missing\" does not exist"), "{missing}");
    server.execute("postgres", "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
    let latin = try_open(&server.url("latin")).map(drop).unwrap_err().to_string();
    assert!(latin.contains("ENCODING 'UTF8'"), "{latin}");
    server.execute("postgres", "CREATE ROLE guest LOGIN");
    server.execute("postgres", "CREATE DATABASE strange");
    let guest = server.url("strange").replace("qd@", "guest@");
    let guest = try_open(&guest).map(drop).unwrap_err().to_string();
    assert!(guest.contains("GRANT CREATE ON DATABASE"), "{guest}");
}

/// A folder with a socket instead of a port.
#[test]
fn store_is_reached_through_a_socket() {
    let Some(server) = PostgresServer::shared(PostgresVersion::V18) else { return };
    let name = database_of(&server.create_database()).to_owned();
    let store = open(&server.socket_url(&name));
    block_on(store.commit(Commit::default().put(Table::Values, "a", json!(1)))).unwrap();
}
