//! Opens a store by its URL. Nothing else in the program names an engine, except for what engines do differently:
//! `store_snapshot` and the commands that care for the store.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use quarterdeck_contracts::Store;
use quarterdeck_knowledge_postgres::{DEFAULT_SCHEMA, KnowledgeDatabase};
use quarterdeck_postgres::{Database, ErrorClass, PostgresSettings};
use quarterdeck_store::postgres::{self, OpenError, SchemaState};
use quarterdeck_store::{PostgresStore, SqliteStore};
use quarterdeck_transports::Secret;

use crate::config::{MigrateSchema, StoreConfig};
use crate::store_url::StoreUrl;
use crate::terminal::info;

/// How long to wait before a database that cannot be reached is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Opens a store for a server, which makes or updates it where that is allowed, and waits for a database as long as is
/// configured.
pub(crate) async fn open_store(url: &StoreUrl, config: &StoreConfig) -> anyhow::Result<Arc<dyn Store>> {
    let deadline = Instant::now() + config.wait;
    let mut is_told = false;
    loop {
        let error = match open_once(url, config).await {
            Err(error) if is_unreachable(&error) && Instant::now() < deadline => error,
            outcome => return outcome,
        };
        if !std::mem::replace(&mut is_told, true) {
            info(&format!("waiting up to {} s for the database: {error:#}", config.wait.as_secs()));
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

async fn open_once(url: &StoreUrl, config: &StoreConfig) -> anyhow::Result<Arc<dyn Store>> {
    if config.migrate == MigrateSchema::Manual {
        return find_url(url, config).await;
    }
    create_store(url, config).await
}

/// Opens a store, and makes it where there is none.
pub(crate) async fn create_store(url: &StoreUrl, config: &StoreConfig) -> anyhow::Result<Arc<dyn Store>> {
    match url {
        StoreUrl::Sqlite(file) => Ok(Arc::new(SqliteStore::open(file)?)),
        StoreUrl::Postgres(address) => Ok(Arc::new(PostgresStore::open(database(address, config)?)?)),
    }
}

/// Opens a store that is there and up to date.
pub(crate) async fn find_url(url: &StoreUrl, config: &StoreConfig) -> anyhow::Result<Arc<dyn Store>> {
    require_schema(url, config).await?;
    create_store(url, config).await
}

/// Fails with a way out where a database holds no store of today's schema.
pub(crate) async fn require_schema(url: &StoreUrl, config: &StoreConfig) -> anyhow::Result<()> {
    if let StoreUrl::Postgres(address) = url {
        let SchemaState { taken, known } = postgres::schema_state(&database(address, config)?).await?;
        if taken < known {
            let state =
                if taken == 0 { "holds no store yet".to_owned() } else { format!("has schema {taken}") };
            bail!(
                "{url} {state}, and this version uses schema {known}\nhelp: run `quarterdeck store migrate`{}",
                if config.migrate == MigrateSchema::Auto { ", or start a server" } else { "" }
            );
        }
    }
    Ok(())
}

/// Connections to a database, as configured.
pub(crate) fn database(address: &Secret, config: &StoreConfig) -> anyhow::Result<Database> {
    let mut settings = PostgresSettings::from_url(address.expose())?;
    settings.pool_size = config.pool_size;
    settings.statement_timeout = config.statement_timeout;
    settings.connect_timeout = config.connect_timeout;
    Ok(Database::connect(settings)?)
}

/// The schema of a database before and after it was brought up to date; 0 where there was none.
pub(crate) struct Migration {
    pub(crate) before: i32,
    pub(crate) after: i32,
}

pub(crate) async fn migrate_database(address: &Secret, config: &StoreConfig) -> anyhow::Result<Migration> {
    let database = database(address, config)?;
    let before = postgres::schema_state(&database).await?.taken;
    postgres::migrate(&database).await?;
    // The tables of the knowledge base; how much of it fits a node's memory is no concern of theirs.
    KnowledgeDatabase::open(database.clone(), DEFAULT_SCHEMA, 0).await?;
    Ok(Migration { before, after: postgres::schema_state(&database).await?.taken })
}

pub(crate) async fn vacuum_database(address: &Secret, config: &StoreConfig) -> anyhow::Result<()> {
    postgres::vacuum(&database(address, config)?).await.context("the tables could not be vacuumed")
}

/// Whether it may be there a little later.
fn is_unreachable(error: &anyhow::Error) -> bool {
    let unreachable = error.downcast_ref::<OpenError>();
    matches!(unreachable, Some(OpenError::Unreachable(cause)) if cause.class() != ErrorClass::Final)
}
