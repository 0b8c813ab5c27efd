//! Reads, and the sweep.

use quarterdeck_contracts::{Row, Scan, StoreError, Table};
use quarterdeck_postgres::Database;
use tokio_postgres::types::Type;

use super::retry::repeat;
use super::tables::number;

/// Rows that are swept in one statement, so that none holds many locks for long.
const SWEEP_BATCH_ROWS: i64 = 1000;

pub(super) async fn get(database: &Database, table: Table, key: &str) -> Result<Option<Row>, StoreError> {
    let key = key.as_bytes().to_vec();
    let found = repeat(database, move |client| {
        let key = key.clone();
        Box::pin(async move {
            let sql = "SELECT value, version FROM qd.rows WHERE tab = $1 AND key = $2";
            client.query_typed_opt(sql, &[(&number(table), Type::INT2), (&key, Type::BYTEA)]).await
        })
    });
    let Some(found) = found.await? else { return Ok(None) };
    decode(table, found.get(0), found.get(1)).map(Some)
}

pub(super) async fn scan(
    database: &Database,
    table: Table,
    scan: Scan,
) -> Result<Vec<(String, Row)>, StoreError> {
    let (is_after, from) = match scan.after {
        Some(after) if after >= scan.prefix => (true, after.into_bytes()),
        _ => (false, scan.prefix.clone().into_bytes()),
    };
    let beyond = beyond(scan.prefix.as_bytes());
    let limit = i64::try_from(scan.limit).unwrap_or(i64::MAX);
    let comparison = if is_after { ">" } else { ">=" };
    let sql = format!(
        "SELECT key, value, version FROM qd.rows
         WHERE tab = $1 AND key {comparison} $2 AND ($3::bytea IS NULL OR key < $3) ORDER BY key LIMIT $4"
    );
    let rows = repeat(database, move |client| {
        let (sql, from, beyond) = (sql.clone(), from.clone(), beyond.clone());
        Box::pin(async move {
            let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 4] = [
                (&number(table), Type::INT2),
                (&from, Type::BYTEA),
                (&beyond, Type::BYTEA),
                (&limit, Type::INT8),
            ];
            client.query_typed(&sql, &values).await
        })
    });
    let rows = rows.await?;
    rows.iter().map(|row| Ok((key(row.get(0))?, decode(table, row.get(1), row.get(2))?))).collect()
}

/// Forgets rows and, after a day, what became of commits. What another node holds at the moment is left for the next time.
pub(super) async fn sweep(database: &Database, now_ms: u64) -> Result<u64, StoreError> {
    let now = i64::try_from(now_ms).unwrap_or(i64::MAX);
    let rows = "WITH gone AS (
            DELETE FROM qd.rows WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM qd.rows WHERE expires_ms <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED))
            RETURNING 1)
        SELECT count(*) FROM gone";
    let commits = "WITH gone AS (
            DELETE FROM qd.commits WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM qd.commits WHERE $1 = $1 AND at < now() - interval '1 day' LIMIT $2
                FOR UPDATE SKIP LOCKED))
            RETURNING 1)
        SELECT count(*) FROM gone";
    let swept = sweep_all(database, rows, now).await?;
    sweep_all(database, commits, now).await?;
    Ok(swept)
}

async fn sweep_all(database: &Database, sql: &'static str, now: i64) -> Result<u64, StoreError> {
    let mut total = 0;
    loop {
        // Repeated after a lost answer, it finds what is left; then too few are counted, which harms no one.
        let swept = repeat(database, move |client| {
            Box::pin(async move {
                client
                    .query_typed_one(sql, &[(&now, Type::INT8), (&SWEEP_BATCH_ROWS, Type::INT8)])
                    .await
                    .map(|row| row.get::<_, i64>(0))
            })
        });
        let swept = swept.await?;
        total += swept.unsigned_abs();
        if swept < SWEEP_BATCH_ROWS {
            return Ok(total);
        }
    }
}

/// The first key after all those with a prefix; `None` when there is none.
fn beyond(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < 0xff)?;
    let mut beyond = prefix[..=last].to_vec();
    beyond[last] += 1;
    Some(beyond)
}

pub(super) fn key(bytes: Vec<u8>) -> Result<String, StoreError> {
    String::from_utf8(bytes).map_err(|_| StoreError::Failed("a key in the database is not text".to_owned()))
}

fn decode(table: Table, value: &str, version: i64) -> Result<Row, StoreError> {
    let value = serde_json::from_str(value).map_err(|_| {
        let table = table.as_str();
        StoreError::Failed(format!("a row of `{table}` is not what was written; restore a backup"))
    })?;
    Ok(Row { value, version: version.cast_unsigned() })
}
