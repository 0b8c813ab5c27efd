//! A store in PostgreSQL: the commands of operators on it, servers on it, and the way there and back.

mod audit;
mod commands;
mod copy;
mod serving;

use std::path::Path;
use std::process::Output;

use quarterdeck_testkit::{PostgresServer, PostgresVersion};

use crate::terminal::command;

/// The name of the node in these tests.
const NODE: &str = "fram";

/// An empty database; `None` where PostgreSQL is not installed, which is said.
fn database() -> Option<String> {
    PostgresServer::shared(PostgresVersion::V18).map(PostgresServer::create_database)
}

/// Runs a command with a database for a store.
fn on(url: &str, folder: &Path, arguments: &[&str]) -> Output {
    let mut command = command(folder);
    command.env("QUARTERDECK_STORE__URL", url).env("QUARTERDECK_CLUSTER__NODE", NODE);
    command.args(arguments).output().unwrap()
}

/// Standard output and standard error of a command that must succeed.
fn printed_on(url: &str, folder: &Path, arguments: &[&str]) -> String {
    let output = on(url, folder, arguments);
    let printed = printed(&output);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {printed}");
    printed
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Runs SQL in the database of a URL.
fn sql(url: &str, statement: &str) -> String {
    let name = url.rsplit('/').next().unwrap().split('?').next().unwrap();
    PostgresServer::shared(PostgresVersion::V18).unwrap().execute(name, statement)
}
