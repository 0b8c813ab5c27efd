//! Stores in databases of a test's own.

use std::path::Path;
use std::sync::Arc;

use quarterdeck_contracts::Store;
use quarterdeck_postgres::{Database, PostgresSettings};
use quarterdeck_store::{PostgresStore, SqliteStore};
use quarterdeck_testkit::{PostgresServer, PostgresVersion};

/// Opens a database by its address, as a process of its own would.
pub(crate) fn open(url: &str) -> PostgresStore {
    let settings = PostgresSettings::from_url(url).unwrap();
    PostgresStore::open(Database::connect(settings).unwrap()).unwrap()
}

/// The database of a folder, whose address is kept there. Where there is no server, which is said, a file stands in.
pub(crate) fn open_folder(version: PostgresVersion, folder: &Path) -> Arc<dyn Store> {
    match address_of_folder(version, folder) {
        Some(url) => Arc::new(open(&url)),
        None => Arc::new(SqliteStore::open(folder.join("store.db")).unwrap()),
    }
}

pub(crate) fn address_of_folder(version: PostgresVersion, folder: &Path) -> Option<String> {
    let server = PostgresServer::shared(version)?;
    let file = folder.join("address");
    if !file.exists() {
        std::fs::write(&file, server.create_database()).unwrap();
    }
    Some(std::fs::read_to_string(&file).unwrap())
}

/// The name of the database in an address.
pub(crate) fn database_of(url: &str) -> &str {
    url.rsplit('/').next().unwrap().split('?').next().unwrap()
}
