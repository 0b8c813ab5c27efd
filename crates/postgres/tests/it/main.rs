//! Addresses, and connections to real servers.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod addresses;
mod calls;
mod encryption;

use quarterdeck_postgres::{Database, PostgresSettings};

fn database(url: &str) -> Database {
    Database::connect(PostgresSettings::from_url(url).unwrap()).unwrap()
}
