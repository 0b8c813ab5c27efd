//! Every row of a store as of one moment, whichever the engine.

use std::time::Duration;

use quarterdeck_contracts::Store;
use quarterdeck_contracts::{StoreError, Table};
use quarterdeck_store::postgres::{self, PostgresSnapshot};
use quarterdeck_store::{ExportedRow, SqliteOptions, SqliteSnapshot, SqliteStore};

use crate::config::StoreConfig;
use crate::store_url::StoreUrl;
use crate::{data, wire};

/// A check of a whole file is waited for, however large it is.
const CHECK_TIMEOUT: Duration = Duration::from_secs(24 * 3_600);

pub(crate) enum StoreSnapshot {
    Sqlite(SqliteSnapshot),
    Postgres { rows: PostgresSnapshot, schema: i32 },
}

impl StoreSnapshot {
    /// Opens a store that is there. A file is checked first, page by page; a damaged one is an error.
    pub(crate) async fn open(url: &StoreUrl, config: &StoreConfig) -> anyhow::Result<Self> {
        match url {
            StoreUrl::Sqlite(file) => {
                data::require_file(file)?;
                let mut options = SqliteOptions::default();
                options.check_timeout = CHECK_TIMEOUT;
                // It waits for the check, and brings an older format up to date.
                SqliteStore::open_with(file, options)?.close().await?;
                Ok(Self::Sqlite(SqliteSnapshot::open(file)?))
            }
            StoreUrl::Postgres(url) => {
                let database = wire::database(url, config)?;
                let schema = postgres::schema_state(&database).await?.taken;
                Ok(Self::Postgres { rows: PostgresSnapshot::open(&database).await?, schema })
            }
        }
    }

    /// The version of the schema.
    pub(crate) fn schema(&self) -> i64 {
        match self {
            Self::Sqlite(_) => quarterdeck_store::SQLITE_FORMAT,
            Self::Postgres { schema, .. } => i64::from(*schema),
        }
    }

    /// The rows of a table after a key, in the order of keys.
    pub(crate) async fn rows(
        &self,
        table: Table,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ExportedRow>, StoreError> {
        match self {
            Self::Sqlite(rows) => rows.rows(table, after, limit),
            Self::Postgres { rows, .. } => rows.rows(table, after, limit).await,
        }
    }

    /// What is wrong beside the rows. Of a file, opening has found that.
    pub(crate) async fn structure_faults(&self) -> Result<Vec<String>, StoreError> {
        match self {
            Self::Sqlite(_) => Ok(Vec::new()),
            Self::Postgres { rows, .. } => rows.structure_faults().await,
        }
    }
}
