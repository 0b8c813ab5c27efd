//! Every row of a database as of one moment, for a copy to another engine and for a check; and what gives unused pages back.

use std::time::Duration;

use quarterdeck_contracts::{StoreError, Table};
use quarterdeck_postgres::{Database, Dedicated};
use tokio::time::timeout;
use tokio_postgres::types::{ToSql, Type};

use super::read::key;
use super::retry::store_error;
use super::tables::number;
use crate::export::ExportedRow;

/// A page is read within this time, whatever the time-out for the statements of calls.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);
const VACUUM_TIMEOUT: Duration = Duration::from_secs(3_600);

/// The rows of a database, of the moment when it was opened, whatever is committed since.
pub struct PostgresSnapshot {
    connection: Dedicated,
    database: Database,
}

impl PostgresSnapshot {
    /// Begins to read a database that has a schema.
    pub async fn open(database: &Database) -> Result<Self, StoreError> {
        let connection = database.dedicated().await.map_err(|error| store_error(&error))?;
        let snapshot = Self { connection, database: database.clone() };
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1";
        snapshot.within(PAGE_TIMEOUT, snapshot.connection.client.batch_execute(begin)).await?;
        Ok(snapshot)
    }

    /// The rows of a table after a key, in the order of keys.
    pub async fn rows(
        &self,
        table: Table,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ExportedRow>, StoreError> {
        let sql = "SELECT key, value, expires_ms FROM qd.rows
                   WHERE tab = $1 AND ($2::bytea IS NULL OR key > $2) ORDER BY key LIMIT $3";
        let after = after.map(str::as_bytes);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let values: [(&(dyn ToSql + Sync), Type); 3] =
            [(&number(table), Type::INT2), (&after, Type::BYTEA), (&limit, Type::INT8)];
        let rows = self.within(PAGE_TIMEOUT, self.connection.client.query_typed(sql, &values)).await?;
        let row = |row: &tokio_postgres::Row| {
            let expires_ms = row.get::<_, Option<i64>>(2).map(|at| u64::try_from(at).unwrap_or(0));
            Ok(ExportedRow { table, key: key(row.get(0))?, value: row.get(1), expires_ms })
        };
        rows.iter().map(row).collect()
    }

    /// What is wrong with the database beside its rows, as a restore of a part of it leaves it.
    pub async fn structure_faults(&self) -> Result<Vec<String>, StoreError> {
        let last: i64 = self.number("SELECT last_value FROM qd.version").await?;
        let newest: i64 = self.number("SELECT coalesce(max(version), 0) FROM qd.rows").await?;
        let largest = Table::ALL.into_iter().map(number).max().unwrap_or_default();
        let unknown = format!("SELECT count(*) FROM qd.rows WHERE tab < 1 OR tab > {largest}");
        let unknown: i64 = self.number(&unknown).await?;
        let mut faults = Vec::new();
        if newest > last {
            faults.push(format!("the number of the last commit, {last}, is behind that of a row, {newest}"));
        }
        if unknown > 0 {
            faults.push(format!("{unknown} rows are in tables that this version does not know"));
        }
        Ok(faults)
    }

    async fn number(&self, sql: &str) -> Result<i64, StoreError> {
        let row = self.within(PAGE_TIMEOUT, self.connection.client.query_typed_one(sql, &[])).await?;
        Ok(row.get(0))
    }

    async fn within<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, StoreError> {
        match timeout(limit, work).await {
            Ok(outcome) => outcome.map_err(|error| store_error(&self.database.error_of(&error))),
            Err(_) => Err(StoreError::Unavailable(format!("no answer within {} s", limit.as_secs()))),
        }
    }
}

/// Gives the room of rows that are gone back to the tables, and lets the planner know what is in them. Nodes may run.
pub async fn vacuum(database: &Database) -> Result<(), StoreError> {
    let connection = database.dedicated().await.map_err(|error| store_error(&error))?;
    for sql in ["VACUUM (ANALYZE) qd.rows", "VACUUM (ANALYZE) qd.commits"] {
        match timeout(VACUUM_TIMEOUT, connection.client.batch_execute(sql)).await {
            Ok(outcome) => outcome.map_err(|error| store_error(&database.error_of(&error)))?,
            Err(_) => {
                let reason = format!("the vacuum did not end within {} s", VACUUM_TIMEOUT.as_secs());
                return Err(StoreError::Unavailable(reason));
            }
        }
    }
    Ok(())
}
