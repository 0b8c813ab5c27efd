//! Vectors in the database: each under the digest of what was embedded, so that a build which was interrupted goes on where
//! it was, and so that two generations share what did not change.

use std::collections::BTreeSet;
use std::pin::pin;

use futures_util::TryStreamExt;
use quarterdeck_contracts::EmbeddingModel;
use quarterdeck_knowledge::saved::{Key, PackedVector};
use quarterdeck_knowledge::{KnowledgeBase, KnownVectors};
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use crate::copy::copy_rows;
use crate::key::{SqlKey, sql_keys};
use crate::{KnowledgeDatabase, KnowledgeError};

/// Vectors that are taken over at a time.
const ADD_BATCH: usize = 10_000;
/// Keys that are deleted in one statement.
const DELETE_BATCH: usize = 10_000;

impl KnowledgeDatabase {
    /// Takes over the vectors of a base that was built elsewhere, so that a build here need not make them again.
    pub async fn add_vectors(&self, base: &KnowledgeBase) -> Result<(), KnowledgeError> {
        let saved = base.saved();
        let Some(model) = saved.model() else { return Ok(()) };
        let connection = self.database.dedicated().await?;
        let places: Vec<usize> = (0..saved.keys().len()).collect();
        for batch in places.chunks(ADD_BATCH) {
            let vectors: Vec<PackedVector> =
                batch.iter().map(|place| (saved.keys()[*place], saved.packed_vector(*place))).collect();
            self.save_vectors(&connection.client, model, &vectors).await?;
        }
        Ok(())
    }

    /// The vectors of a model, whether the build that made them was finished or not. A damaged one is left out, and so made
    /// again.
    pub(crate) async fn known_vectors(
        &self,
        client: &Client,
        model: &EmbeddingModel,
    ) -> Result<KnownVectors, KnowledgeError> {
        let mut known = KnownVectors::new(model.clone());
        self.each_vector(client, model, |key, packed| {
            if !known.put(key, packed) {
                tracing::warn!("a vector in the knowledge base's database is damaged and made again");
            }
        })
        .await?;
        Ok(known)
    }

    /// In the order of keys.
    pub(crate) async fn each_vector(
        &self,
        client: &Client,
        model: &EmbeddingModel,
        mut each: impl FnMut(Key, &[u8]),
    ) -> Result<(), KnowledgeError> {
        let read = format!("SELECT key, vector FROM {}.vectors WHERE model = $1 ORDER BY key", self.schema);
        let rows = client.query_typed_raw(&read, [(model.digest.clone(), Type::TEXT)]).await?;
        let mut rows = pin!(rows);
        while let Some(row) = rows.try_next().await? {
            each(row.get::<_, SqlKey>(0).0, row.get(1));
        }
        Ok(())
    }

    /// Puts vectors where they belong. One that is there is replaced: it may be damaged.
    pub(crate) async fn save_vectors(
        &self,
        client: &Client,
        model: &EmbeddingModel,
        fresh: &[PackedVector],
    ) -> Result<(), KnowledgeError> {
        let (schema, digest) = (&self.schema, &model.digest);
        client
            .batch_execute(
                "BEGIN; SET LOCAL statement_timeout = 0;
                 CREATE TEMP TABLE fresh_vectors (key uuid, vector bytea) ON COMMIT DROP",
            )
            .await?;
        copy_rows(client, "fresh_vectors (key, vector)", 2, fresh.len(), |at, row| {
            let (key, packed) = &fresh[at];
            row.field(key);
            row.field(packed);
        })
        .await?;
        let put = format!(
            "INSERT INTO {schema}.vectors (model, key, vector)
             SELECT DISTINCT ON (key) $1, key, vector FROM fresh_vectors ORDER BY key
             ON CONFLICT (model, key) DO UPDATE SET vector = excluded.vector"
        );
        client.execute_typed(&put, &[(digest, Type::TEXT)]).await?;
        Ok(client.batch_execute("COMMIT").await?)
    }

    /// Deletes the vectors that neither this base nor the one before it has: nodes search that until they have loaded this.
    pub(crate) async fn delete_unused_vectors(
        &self,
        client: &Client,
        models: &[&EmbeddingModel],
        used: &BTreeSet<Key>,
    ) -> Result<(), KnowledgeError> {
        let schema = &self.schema;
        let digests: Vec<&str> = models.iter().map(|model| model.digest.as_str()).collect();
        let others = format!("DELETE FROM {schema}.vectors WHERE model <> ALL ($1)");
        client.execute_typed(&others, &[(&digests, Type::TEXT_ARRAY)]).await?;
        let read = format!("SELECT DISTINCT key FROM {schema}.vectors");
        let rows = client.query_typed_raw(&read, std::iter::empty::<(i32, Type)>()).await?;
        let mut rows = pin!(rows);
        let mut unused = Vec::new();
        while let Some(row) = rows.try_next().await? {
            let key = row.get::<_, SqlKey>(0).0;
            if !used.contains(&key) {
                unused.push(key);
            }
        }
        let delete = format!("DELETE FROM {schema}.vectors WHERE model = ANY ($1) AND key = ANY ($2)");
        for batch in unused.chunks(DELETE_BATCH) {
            let keys = sql_keys(batch.iter().copied());
            client.execute_typed(&delete, &[(&digests, Type::TEXT_ARRAY), (&keys, Type::UUID_ARRAY)]).await?;
        }
        Ok(())
    }
}
