//! What the file contains, and how an older one is brought up to date.

use rusqlite::{Connection, TransactionBehavior};

/// In the file's header ("Qdck").
pub(super) const APPLICATION_ID: i32 = 0x5164_636b;

/// The steps from an empty file to today's. A file's version is how many of them it has had; a step that was released
/// is never changed.
const STEPS: &[&str] = &[
    "
    CREATE TABLE rows (
        table_name TEXT NOT NULL,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        version INTEGER NOT NULL,
        expires_ms INTEGER,
        PRIMARY KEY (table_name, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX rows_by_expiry ON rows (expires_ms) WHERE expires_ms IS NOT NULL;
    CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    INSERT INTO meta VALUES ('version', 0);
",
    "
    ALTER TABLE rows ADD COLUMN sum INTEGER;
",
    // Confirmations of earlier files get the index rows that new ones are written with.
    "
    INSERT OR IGNORE INTO rows (table_name, key, value, version, expires_ms)
    SELECT 'session_confirmations', session || '/' || key, '{}', version, expires_ms
    FROM (SELECT key, version, expires_ms, CASE WHEN json_valid(value) THEN value ->> 'sessionId' END AS session
          FROM rows WHERE table_name = 'confirmations')
    WHERE session IS NOT NULL;
",
];

/// The first version whose rows have checksums. Rows from before have none until they are written again.
pub(super) const FIRST_WITH_CHECKSUMS: i64 = 2;

/// The version of today's files.
pub const VERSION: i64 = STEPS.len() as i64;

/// A file's version; 0 for an empty file.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Whether the file is ours, or is empty and so may become ours.
pub(super) fn is_ours(connection: &Connection) -> rusqlite::Result<bool> {
    let id: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if id == APPLICATION_ID {
        return Ok(true);
    }
    let objects: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(id == 0 && objects == 0 && version(connection)? == 0)
}

/// Takes the steps that a file has not had, all of them or none.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    // Another process may be doing the same; the second one finds nothing left to do.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let done = usize::try_from(version(&transaction)?).unwrap_or(0);
    for step in STEPS.iter().skip(done) {
        transaction.execute_batch(step)?;
    }
    if done < STEPS.len() {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.commit()
}
