//! pgvector's table: the vectors of one model as half-precision numbers under a graph (HNSW).
//!
//! A table that is searched is only ever added to. When much has changed a new one is made beside it: that is faster than
//! mending the graph, and nodes search the old one until they have loaded the new base.

use std::collections::BTreeSet;
use std::pin::pin;

use futures_util::TryStreamExt;
use quarterdeck_knowledge::saved::{Key, vector_from_packed};
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use crate::copy::copy_rows;
use crate::key::SqlKey;
use crate::lease::BuildLease;
use crate::save::PreparedBase;
use crate::{Generation, KnowledgeDatabase, KnowledgeError, PgvectorError};

/// pgvector's limit for an index of `halfvec`.
const MAX_DIMENSION: usize = 4_000;
/// A table is added to while no more than one vector in so many is new or unused.
const REUSE_SHARE: usize = 4;
/// About what a vector takes in the graph beside its numbers.
const GRAPH_BYTES: usize = 400;

impl KnowledgeDatabase {
    /// The table that has the vectors of this base, or why there can be none.
    pub(crate) async fn fill_embeddings(
        &self,
        client: &Client,
        base: &PreparedBase,
        current: Option<&Generation>,
        lease: &BuildLease,
    ) -> Result<Result<String, PgvectorError>, KnowledgeError> {
        if let Some(problem) = self.find_problem(client, base).await? {
            return Ok(Err(problem));
        }
        let wanted: BTreeSet<Key> = base.saved.keys().iter().copied().collect();
        let same_model = current.filter(|current| current.model.as_ref() == base.saved.model());
        if let Some(table) = same_model.and_then(|current| current.embeddings.as_deref()) {
            let there = self.embedded_keys(client, table).await?;
            let missing: BTreeSet<Key> = wanted.difference(&there).copied().collect();
            let unused = there.difference(&wanted).count();
            if (missing.len() + unused) * REUSE_SHARE <= there.len() {
                self.copy_embeddings(client, table, base, &missing).await?;
                return Ok(Ok(table.to_owned()));
            }
        }
        let table = format!("embeddings_{}", lease.token);
        self.create_embeddings(client, &table, base, &wanted).await?;
        Ok(Ok(table))
    }

    async fn find_problem(
        &self,
        client: &Client,
        base: &PreparedBase,
    ) -> Result<Option<PgvectorError>, KnowledgeError> {
        let dimension = base.saved.model().map_or(0, |model| model.dimension);
        if dimension > MAX_DIMENSION {
            return Ok(Some(PgvectorError::TooLong { dimension, limit: MAX_DIMENSION }));
        }
        // A role that may not create it says so, and a server that does not have it as well: both are told below.
        if let Err(error) = client.batch_execute("CREATE EXTENSION IF NOT EXISTS vector").await {
            tracing::debug!(%error, "pgvector could not be created");
        }
        let version = "SELECT extversion FROM pg_extension WHERE extname = 'vector'";
        let rows = client.query_typed(version, &[]).await?;
        let Some(version) = rows.first().map(|row| row.get::<_, String>(0)) else {
            let (passages, limit) = (base.saved.keys().len(), self.max_passages_in_memory);
            return Ok(Some(PgvectorError::Missing { passages, limit }));
        };
        let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
        let is_enough = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (0, 8);
        Ok((!is_enough).then_some(PgvectorError::TooOld { found: version }))
    }

    async fn embedded_keys(&self, client: &Client, table: &str) -> Result<BTreeSet<Key>, KnowledgeError> {
        let read = format!("SELECT key FROM {}.{table}", self.schema);
        let rows = client.query_typed_raw(&read, std::iter::empty::<(i32, Type)>()).await?;
        let mut rows = pin!(rows);
        let mut keys = BTreeSet::new();
        while let Some(row) = rows.try_next().await? {
            keys.insert(row.get::<_, SqlKey>(0).0);
        }
        Ok(keys)
    }

    /// All or nothing: a build that ends here leaves no table behind.
    async fn create_embeddings(
        &self,
        client: &Client,
        table: &str,
        base: &PreparedBase,
        wanted: &BTreeSet<Key>,
    ) -> Result<(), KnowledgeError> {
        let schema = &self.schema;
        let dimension = base.saved.model().map_or(0, |model| model.dimension);
        client.batch_execute("BEGIN; SET LOCAL statement_timeout = 0").await?;
        self.warn_about_memory(client, wanted.len() * (dimension * 2 + GRAPH_BYTES)).await?;
        client
            .batch_execute(&format!(
                "CREATE TABLE {schema}.{table} (key uuid NOT NULL, embedding halfvec({dimension}) NOT NULL);
                 ALTER TABLE {schema}.{table} ALTER embedding SET STORAGE PLAIN"
            ))
            .await?;
        self.copy_embeddings(client, table, base, wanted).await?;
        client
            .batch_execute(&format!(
                "ALTER TABLE {schema}.{table} ADD PRIMARY KEY (key);
                 CREATE INDEX ON {schema}.{table} USING hnsw (embedding halfvec_ip_ops)
                     WITH (m = 16, ef_construction = 64);
                 ANALYZE {schema}.{table};
                 COMMIT"
            ))
            .await?;
        Ok(())
    }

    /// A graph that does not fit takes many times as long.
    async fn warn_about_memory(&self, client: &Client, needed: usize) -> Result<(), KnowledgeError> {
        let read = "SELECT pg_size_bytes(current_setting('maintenance_work_mem'))";
        let rows = client.query_typed(read, &[]).await?;
        let there: i64 = rows.first().map_or(0, |row| row.get(0));
        if usize::try_from(there).unwrap_or_default() < needed {
            let (needed_mb, there_mb) = (needed >> 20, there >> 20);
            tracing::warn!(
                needed_mb,
                there_mb,
                "the index of vectors does not fit the database's maintenance_work_mem and takes long; raise it for this role"
            );
        }
        Ok(())
    }

    async fn copy_embeddings(
        &self,
        client: &Client,
        table: &str,
        base: &PreparedBase,
        wanted: &BTreeSet<Key>,
    ) -> Result<(), KnowledgeError> {
        let saved = &base.saved;
        let dimension = saved.model().map_or(0, |model| model.dimension);
        let mut left = wanted.clone();
        let mut places = Vec::with_capacity(wanted.len());
        for (place, key) in saved.keys().iter().enumerate() {
            if left.remove(key) {
                places.push(place);
            }
        }
        let target = format!("{}.{table} (key, embedding)", self.schema);
        copy_rows(client, &target, 2, places.len(), |at, row| {
            let place = places[at];
            let key = &saved.keys()[place];
            // It was packed a moment ago, so that it is whole.
            let vector = vector_from_packed(key, &saved.packed_vector(place), dimension).unwrap_or_default();
            row.field(key);
            row.field(&halfvec(&vector));
        })
        .await?;
        Ok(())
    }

    pub(crate) async fn drop_other_embeddings(
        &self,
        client: &Client,
        kept: &[&str],
    ) -> Result<(), KnowledgeError> {
        let read =
            "SELECT tablename::text FROM pg_tables WHERE schemaname = $1 AND tablename LIKE 'embeddings\\_%'";
        for row in client.query_typed(read, &[(&self.schema, Type::TEXT)]).await? {
            let table: &str = row.get(0);
            if !kept.contains(&table) {
                client.batch_execute(&format!("DROP TABLE {}.{table}", self.schema)).await?;
            }
        }
        Ok(())
    }
}

/// pgvector's binary form: the dimension, two bytes without a meaning, and the numbers.
fn halfvec(vector: &[f32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(4 + vector.len() * 2);
    bytes.extend((vector.len() as u16).to_be_bytes());
    bytes.extend([0, 0]);
    vector.iter().for_each(|number| bytes.extend(half(*number).to_be_bytes()));
    bytes
}

/// The nearest number of half precision, ties to the even one. Numbers of a unit vector are at most one.
fn half(number: f32) -> u16 {
    let bits = number.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let size = number.abs();
    // Below this the exponent has no room, and numbers are multiples of 2^-24.
    if size < 1.0 / 16_384.0 {
        return sign | (size * 16_777_216.0).round_ties_even() as u16;
    }
    let exact = (bits & 0x7fff_ffff) - (112 << 23);
    let rounded = (exact + 0xfff + (exact >> 13 & 1)) >> 13;
    sign | rounded.min(0x7bff) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(half: u16) -> f32 {
        let sign = if half & 0x8000 == 0 { 1.0 } else { -1.0 };
        let (exponent, fraction) = (i32::from(half >> 10 & 31), f32::from(half & 1_023));
        let size = match exponent {
            0 => fraction * 2_f32.powi(-24),
            _ => (1.0 + fraction / 1_024.0) * 2_f32.powi(exponent - 15),
        };
        sign * size
    }

    #[test]
    fn half_precision_is_the_nearest_there_is() {
        for number in 0..0x7bff_u16 {
            let (low, high) = (value(number), value(number + 1));
            assert_eq!((half(low), half(-high)), (number, (number + 1) | 0x8000), "{low}");
            let middle = low + (high - low) / 2.0;
            assert_eq!(half(middle), number + (number & 1), "{middle}");
            assert_eq!(half(low + (high - low) * 0.49), number, "{low}");
        }
    }
}
