//! The tables. They are made when they are not there; older ones are extended, and never changed in a way that the version
//! before cannot use.

use quarterdeck_postgres::Database;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::KnowledgeError;

/// The schema of the base that nodes serve.
pub const DEFAULT_SCHEMA: &str = "qd_knowledge";
/// Counted up with every change of the tables.
const VERSION: i32 = 1;
/// The oldest version of Quarterdeck's tables whose code can use these.
const COMPATIBLE_WITH: i32 = 1;

/// A value with its type, which need not be asked for then.
pub(crate) type Param = (Box<dyn ToSql + Sync + Send>, Type);

/// As the client takes them.
pub(crate) fn borrow(params: &[Param]) -> Vec<(&(dyn ToSql + Sync), Type)> {
    params.iter().map(|(value, kind)| (&**value as &(dyn ToSql + Sync), kind.clone())).collect()
}

/// The base in a database. Cheap to clone.
#[derive(Clone)]
pub struct KnowledgeDatabase {
    pub(crate) database: Database,
    pub(crate) schema: String,
    pub(crate) max_passages_in_memory: usize,
}

impl KnowledgeDatabase {
    /// Makes the tables if they are not there. `schema` is a plain lower-case name.
    pub async fn open(
        database: Database,
        schema: &str,
        max_passages_in_memory: usize,
    ) -> Result<Self, KnowledgeError> {
        let opened = Self { database, schema: schema.to_owned(), max_passages_in_memory };
        match opened.version().await? {
            Some((_, compatible_with)) if compatible_with > VERSION => {
                return Err(KnowledgeError::Newer { found: compatible_with, known: VERSION });
            }
            Some((version, _)) if version >= VERSION => {}
            _ => opened.execute(create_tables(&opened.schema)).await?,
        }
        Ok(opened)
    }

    /// The version of the tables, and the oldest that can use them.
    async fn version(&self) -> Result<Option<(i32, i32)>, KnowledgeError> {
        let schema = &self.schema;
        let there =
            self.query(format!("SELECT to_regclass('{schema}.versions') IS NOT NULL"), vec![]).await?;
        if !there.first().is_some_and(|row| row.get(0)) {
            return Ok(None);
        }
        let rows =
            self.query(format!("SELECT version, compatible_with FROM {schema}.versions"), vec![]).await?;
        Ok(rows.first().map(|row| (row.get(0), row.get(1))))
    }

    /// One statement on a connection of the pool, within its time-out.
    pub(crate) async fn query(&self, sql: String, params: Vec<Param>) -> Result<Vec<Row>, KnowledgeError> {
        let call = self
            .database
            .call(move |client| Box::pin(async move { client.query_typed(&sql, &borrow(&params)).await }));
        Ok(call.await?)
    }

    async fn execute(&self, sql: String) -> Result<(), KnowledgeError> {
        let call =
            self.database.call(move |client| Box::pin(async move { client.batch_execute(&sql).await }));
        Ok(call.await?)
    }

    /// Forgets everything, tables included.
    pub async fn drop_schema(&self) -> Result<(), KnowledgeError> {
        self.execute(format!("DROP SCHEMA IF EXISTS {} CASCADE", self.schema)).await
    }
}

/// One transaction: of two nodes that start at once, the second waits and finds everything made. A schema that is there
/// is not asked for, so that its owner need not own the database.
fn create_tables(schema: &str) -> String {
    format!(
        "BEGIN;
         SELECT pg_advisory_xact_lock(hashtextextended('{schema}', 0));
         DO $$ BEGIN IF to_regnamespace('{schema}') IS NULL THEN CREATE SCHEMA {schema}; END IF; END $$;
         CREATE TABLE IF NOT EXISTS {schema}.versions (
             one bool PRIMARY KEY DEFAULT true CHECK (one), version int NOT NULL, compatible_with int NOT NULL);
         CREATE TABLE IF NOT EXISTS {schema}.records (
             id text COLLATE \"C\" PRIMARY KEY, hash text NOT NULL, body text NOT NULL);
         CREATE TABLE IF NOT EXISTS {schema}.vectors (
             model text NOT NULL, key uuid NOT NULL, vector bytea NOT NULL, PRIMARY KEY (model, key));
         CREATE TABLE IF NOT EXISTS {schema}.parts (
             name text NOT NULL, number int NOT NULL, bytes bytea NOT NULL, PRIMARY KEY (name, number));
         ALTER TABLE {schema}.parts ALTER bytes SET STORAGE EXTERNAL;
         CREATE TABLE IF NOT EXISTS {schema}.generation (
             one bool PRIMARY KEY DEFAULT true CHECK (one), number bigint NOT NULL, fingerprint text NOT NULL,
             left_out bigint NOT NULL, records bigint NOT NULL, record_bytes bigint NOT NULL, passages bigint NOT NULL,
             records_digest bytea NOT NULL, model text, embeddings text);
         CREATE TABLE IF NOT EXISTS {schema}.build_lease (
             one bool PRIMARY KEY DEFAULT true CHECK (one), holder text NOT NULL, token bigint NOT NULL,
             beat bigint NOT NULL);
         INSERT INTO {schema}.build_lease (holder, token, beat) VALUES ('', 0, 0) ON CONFLICT DO NOTHING;
         INSERT INTO {schema}.versions (version, compatible_with) VALUES ({VERSION}, {COMPATIBLE_WITH})
             ON CONFLICT (one) DO UPDATE SET version = excluded.version, compatible_with = excluded.compatible_with;
         COMMIT"
    )
}
