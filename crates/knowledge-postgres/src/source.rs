//! Vectors that pgvector compares.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join3;
use quarterdeck_contracts::EmbeddingModel;
use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_knowledge::saved::{Key, PackedVector, Scope, SourceError, VectorSource};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::key::{SqlKey, sql_keys};
use crate::schema::{Param, borrow};
use crate::{KnowledgeDatabase, KnowledgeError};

/// A search that takes longer is answered by words.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(2);
/// pgvector's list of candidates: at 400 it found 96 of 100 in a million.
const MIN_EF_SEARCH: usize = 400;
/// pgvector takes no more.
const MAX_EF_SEARCH: usize = 1_000;

pub(crate) struct PgvectorSource {
    of: KnowledgeDatabase,
    table: String,
    model: EmbeddingModel,
    /// An engine that is down is logged once.
    is_failing: Arc<AtomicBool>,
}

impl PgvectorSource {
    pub(crate) fn new(of: KnowledgeDatabase, table: String, model: EmbeddingModel) -> Self {
        Self { of, table, model, is_failing: Arc::default() }
    }

    /// `Err` after a word in the log.
    fn report<T>(is_failing: &AtomicBool, answer: Result<T, KnowledgeError>) -> Result<T, SourceError> {
        match answer {
            Ok(answer) => {
                is_failing.store(false, Ordering::Relaxed);
                Ok(answer)
            }
            Err(error) => {
                if !is_failing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%error, "meaning cannot be searched in the database; searches are by words");
                }
                Err(SourceError)
            }
        }
    }
}

impl VectorSource for PgvectorSource {
    fn nearest(&self, question: Arc<[f32]>, scope: Scope) -> BoxFuture<Result<Vec<Key>, SourceError>> {
        let table = format!("{}.{}", self.of.schema, self.table);
        let (settings, sql, params) = statement(&table, &question, scope);
        let (database, is_failing) = (self.of.database.clone(), Arc::clone(&self.is_failing));
        Box::pin(async move {
            let call = database.call_within(SEARCH_TIMEOUT, SEARCH_TIMEOUT, move |client| {
                Box::pin(async move {
                    let params = borrow(&params);
                    // All three go out at once and in this order: one round trip, and a caller that drops this leaves no
                    // transaction open.
                    let (begun, found, ended) = join3(
                        client.batch_execute(&settings),
                        client.query_typed(&sql, &params),
                        client.batch_execute("COMMIT"),
                    )
                    .await;
                    begun?;
                    let found = found?;
                    ended?;
                    Ok(found)
                })
            });
            let found = Self::report(&is_failing, call.await.map_err(KnowledgeError::from))?;
            Ok(found.iter().map(|row: &Row| row.get::<_, SqlKey>(0).0).collect())
        })
    }

    fn fetch(&self, keys: Vec<Key>) -> BoxFuture<Result<Vec<PackedVector>, SourceError>> {
        let (of, is_failing) = (self.of.clone(), Arc::clone(&self.is_failing));
        let model = self.model.digest.clone();
        Box::pin(async move {
            let sql =
                format!("SELECT key, vector FROM {}.vectors WHERE model = $1 AND key = ANY ($2)", of.schema);
            let params: Vec<Param> =
                vec![(Box::new(model), Type::TEXT), (Box::new(sql_keys(keys)), Type::UUID_ARRAY)];
            let rows = Self::report(&is_failing, of.query(sql, params).await)?;
            Ok(rows.iter().map(|row| (row.get::<_, SqlKey>(0).0, row.get(1))).collect())
        })
    }
}

/// The settings of the transaction, the statement and its values. Vectors have length one, so the inner product is the
/// cosine, and a passage that the model saw nothing in is merely far away.
fn statement(table: &str, question: &[f32], scope: Scope) -> (String, String, Vec<Param>) {
    let begin = format!("BEGIN READ ONLY; SET LOCAL statement_timeout = {};", SEARCH_TIMEOUT.as_millis());
    let question: Param = (Box::new(vector_text(question)), Type::TEXT);
    match scope {
        Scope::Only { keys, limit } => (
            // With its index there, the planner would take it, whatever passes.
            format!("{begin} SET LOCAL enable_indexscan = off"),
            format!(
                "SELECT key FROM {table} WHERE key = ANY ($2) ORDER BY embedding <#> $1::text::halfvec LIMIT {limit}"
            ),
            vec![question, (Box::new(sql_keys(keys)), Type::UUID_ARRAY)],
        ),
        Scope::Index { limit } => {
            let ef_search = limit.clamp(MIN_EF_SEARCH, MAX_EF_SEARCH);
            let max_scanned = (2 * limit).max(20_000);
            (
                format!(
                    "{begin} SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL jit = off;
                     SET LOCAL hnsw.ef_search = {ef_search}; SET LOCAL hnsw.iterative_scan = relaxed_order;
                     SET LOCAL hnsw.max_scan_tuples = {max_scanned}; SET LOCAL hnsw.scan_mem_multiplier = 16"
                ),
                format!("SELECT key FROM {table} ORDER BY embedding <#> $1::text::halfvec LIMIT {limit}"),
                vec![question],
            )
        }
    }
}

/// As pgvector reads it.
fn vector_text(vector: &[f32]) -> String {
    let mut text = String::with_capacity(vector.len() * 12);
    for (number, at) in vector.iter().zip(0..) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{}{number}", if at == 0 { '[' } else { ',' });
    }
    text.push(']');
    text
}
