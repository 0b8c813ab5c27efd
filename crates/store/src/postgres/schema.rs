//! What the database contains, and how an older one is brought up to date while nodes of the last version still run.

use std::time::Duration;

use quarterdeck_postgres::{Database, DatabaseError, ErrorClass};
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::types::Type;

use super::retry::{MAX_RETRY_DELAY, RETRY_TIMEOUT};

/// Only one process takes steps at a time. Any number does that no other program on the same database uses.
const MIGRATION_LOCK: i64 = 0x5164_636b_7374_6570;

/// A step may rewrite a large table, and others wait for it.
const MIGRATION_TIMEOUT: Duration = Duration::from_secs(600);

/// One step of the schema. A step that was released is never changed.
struct Step {
    sql: &'static str,
    /// The oldest schema whose programs still work after this step: those that know as many steps or more. A step that only
    /// adds leaves it as it was; one that takes away what the last version still used raises it, a version later.
    oldest: i32,
}

const STEPS: &[Step] = &[Step { sql: include_str!("steps/1.sql"), oldest: 1 }];

/// How many steps this version knows.
const KNOWN: i32 = STEPS.len() as i32;

/// Why a database could not be opened as a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    #[error("{0}; check the address, and that the server runs and can be reached from here")]
    Unreachable(DatabaseError),
    #[error(
        "{address} has schema {found}, which programs that know less than schema {oldest} must not use, and this version \
         of Quarterdeck knows {known}; use the newer version"
    )]
    Newer { address: String, found: i32, oldest: i32, known: i32 },
    #[error("{address} is encoded as {found}; create the database with ENCODING 'UTF8'")]
    Encoding { address: String, found: String },
    #[error(
        "{address} could not be brought up to schema {known}: {source}; its user needs the right to create a schema \
         (GRANT CREATE ON DATABASE … TO …), or to be the owner of the schema `qd`"
    )]
    Migration { address: String, known: i32, source: DatabaseError },
    #[error("the store's threads cannot be started: {0}")]
    Threads(std::io::Error),
}

/// Brings a database up to date, if this version may use it, and says which schema it has then.
pub async fn migrate(database: &Database) -> Result<i32, OpenError> {
    let deadline = Instant::now() + RETRY_TIMEOUT;
    loop {
        let migrated = timeout(MIGRATION_TIMEOUT, try_migrate(database)).await.unwrap_or_else(|_| {
            let (address, reason) = (database.address().to_owned(), "the schema is not ready yet".to_owned());
            Err(OpenError::Unreachable(DatabaseError::Lost { address, reason }))
        });
        match migrated {
            Err(OpenError::Unreachable(error))
                if error.class() != ErrorClass::Final && Instant::now() < deadline =>
            {
                sleep(MAX_RETRY_DELAY).await;
            }
            result => return result,
        }
    }
}

async fn try_migrate(database: &Database) -> Result<i32, OpenError> {
    let address = || database.address().to_owned();
    let mut connection = database.dedicated().await.map_err(OpenError::Unreachable)?;
    let failed = |error: tokio_postgres::Error| {
        let source = database.error_of(&error);
        if matches!(source, DatabaseError::Lost { .. }) {
            return OpenError::Unreachable(source);
        }
        OpenError::Migration { address: address(), known: KNOWN, source }
    };
    let encoding = connection.client.query_typed_one("SELECT current_setting('server_encoding')", &[]).await;
    let encoding: String = encoding.map_err(failed)?.get(0);
    if encoding != "UTF8" {
        return Err(OpenError::Encoding { address: address(), found: encoding });
    }
    if let Some(steps) = steps_taken(&connection.client).await.map_err(failed)?
        && steps.taken >= KNOWN
    {
        return steps.accept(database).map(|()| steps.taken);
    }
    let transaction = connection.client.transaction().await.map_err(failed)?;
    let lock = "SELECT pg_advisory_xact_lock($1)";
    transaction.query_typed(lock, &[(&MIGRATION_LOCK, Type::INT8)]).await.map_err(failed)?;
    // Another process may have taken them while this one waited.
    let steps = match steps_taken(transaction.client()).await.map_err(failed)? {
        Some(steps) => steps,
        None => {
            transaction.batch_execute(CREATE).await.map_err(failed)?;
            StepsTaken { taken: 0, oldest: 0 }
        }
    };
    for (number, step) in (1_i32..).zip(STEPS).filter(|(number, _)| *number > steps.taken) {
        transaction.batch_execute(step.sql).await.map_err(failed)?;
        let done = "INSERT INTO qd.steps (step, oldest) VALUES ($1, $2)";
        let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
            [(&number, Type::INT4), (&step.oldest, Type::INT4)];
        transaction.execute_typed(done, &values).await.map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)?;
    steps.accept(database).map(|()| steps.taken.max(KNOWN))
}

/// How far a database has been brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaState {
    /// Its schema; 0 when there is none.
    pub taken: i32,
    /// The newest that this version knows.
    pub known: i32,
}

/// Looks at the schema of a database, and changes nothing. One that this version must not use is an error.
pub async fn schema_state(database: &Database) -> Result<SchemaState, OpenError> {
    let connection = database.dedicated().await.map_err(OpenError::Unreachable)?;
    let steps = steps_taken(&connection.client).await;
    let steps = steps.map_err(|error| OpenError::Unreachable(database.error_of(&error)))?;
    let taken = match steps {
        Some(steps) => {
            steps.accept(database)?;
            steps.taken
        }
        None => 0,
    };
    Ok(SchemaState { taken, known: KNOWN })
}

const CREATE: &str = "
    CREATE SCHEMA IF NOT EXISTS qd;
    CREATE TABLE qd.steps (
        step int PRIMARY KEY,
        oldest int NOT NULL,
        at timestamptz NOT NULL DEFAULT now()
    );
";

struct StepsTaken {
    taken: i32,
    oldest: i32,
}

impl StepsTaken {
    /// Two adjacent versions run side by side: a newer schema says which older programs it still serves.
    fn accept(&self, database: &Database) -> Result<(), OpenError> {
        if self.oldest > KNOWN {
            let address = database.address().to_owned();
            return Err(OpenError::Newer { address, found: self.taken, oldest: self.oldest, known: KNOWN });
        }
        Ok(())
    }
}

/// `None` when nothing was ever made here.
async fn steps_taken(client: &tokio_postgres::Client) -> Result<Option<StepsTaken>, tokio_postgres::Error> {
    // The catalogue itself: `to_regclass` remembers within a transaction that there was no such table.
    let exists = "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = 'qd' AND tablename = 'steps')";
    let exists = client.query_typed_one(exists, &[]).await?;
    if !exists.get::<_, bool>(0) {
        return Ok(None);
    }
    let row =
        client.query_typed_one("SELECT coalesce(max(step), 0), coalesce(max(oldest), 0) FROM qd.steps", &[]);
    let row = row.await?;
    Ok(Some(StepsTaken { taken: row.get(0), oldest: row.get(1) }))
}
