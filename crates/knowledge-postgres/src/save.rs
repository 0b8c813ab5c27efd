//! Saving: all or nothing, and what did not change is not written.

use std::collections::{BTreeSet, HashMap};

use quarterdeck_contracts::EmbeddingModel;
use quarterdeck_knowledge::KnowledgeBase;
use quarterdeck_knowledge::saved::{
    Changes, Key, Part, PassageList, RecordsDigest, SavedBase, Sources, hash_of,
};
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use crate::copy::copy_rows;
use crate::lease::BuildLease;
use crate::{Generation, KnowledgeDatabase, KnowledgeError};

/// A part is read piece by piece.
const MAX_PIECE_BYTES: usize = 1024 * 1024;

/// A base as it is to be stored.
pub(crate) struct PreparedBase {
    pub(crate) saved: SavedBase,
    /// By record.
    pub(crate) hashes: Vec<String>,
    digest: [u8; 32],
    record_bytes: usize,
    index: Part,
    passages: Option<Part>,
}

/// The base that is to be replaced.
pub(crate) struct Before {
    pub(crate) generation: Option<Generation>,
    /// Of its vectors.
    pub(crate) keys: Vec<Key>,
}

/// What a save came to.
pub(crate) struct SavedGeneration {
    pub(crate) generation: i64,
    pub(crate) is_new: bool,
    pub(crate) changes: Changes,
}

impl PreparedBase {
    /// Computes, so it is called on a thread that may be held.
    pub(crate) fn new(base: &KnowledgeBase) -> Self {
        let saved = base.saved();
        let hashes: Vec<String> = saved.records().map(|(_, body)| hash_of(body)).collect();
        let mut digest = RecordsDigest::default();
        hashes.iter().for_each(|hash| digest.add(hash));
        let digest = digest.finish();
        let record_bytes = saved.records().map(|(_, body)| body.len()).sum();
        let index = Part::new(&digest, saved.index());
        let passages = saved.passages().map(|passages| Part::new(&digest, passages));
        Self { hashes, digest, record_bytes, index, passages, saved }
    }
}

impl KnowledgeDatabase {
    pub(crate) async fn read_before(&self, client: &Client) -> Result<Before, KnowledgeError> {
        let generation = self.read_generation(client).await?;
        let list = self.read_part(client, "passages").await?;
        let list = list.and_then(|part| PassageList::read(&part.content));
        Ok(Before { generation, keys: list.map(|list| list.keys().to_vec()).unwrap_or_default() })
    }

    /// Makes this base the current one, if the lease still holds. `made` vectors were not in the database before.
    pub(crate) async fn save(
        &self,
        client: &Client,
        base: &PreparedBase,
        sources: &Sources,
        embeddings: Option<&str>,
        made: usize,
        lease: &BuildLease,
    ) -> Result<SavedGeneration, KnowledgeError> {
        self.begin_under(client, lease).await?;
        let current = self.read_generation(client).await?;
        let changes = self.save_records(client, base).await?;
        let number = current.as_ref().map_or(0, |current| current.number);
        // A vector that had to be made is one that nodes could not load.
        let is_same = made + changes.added + changes.changed + changes.removed == 0
            && self.is_stored(client, base, current.as_ref(), embeddings).await?;
        let generation = if is_same { number } else { number + 1 };
        if !is_same {
            self.save_part(client, "index", Some(&base.index)).await?;
            self.save_part(client, "passages", base.passages.as_ref()).await?;
        }
        self.save_generation(client, base, sources, embeddings, generation).await?;
        if let Err(error) = client.batch_execute("COMMIT").await {
            // Its answer may have been lost after it was done.
            let there = self.generation().await?;
            if there.is_none_or(|there| there.number != generation || there.records_digest != base.digest) {
                return Err(error.into());
            }
        }
        Ok(SavedGeneration { generation, is_new: !is_same, changes })
    }

    /// Begins a transaction that holds the lease until it ends. Another node that took over comes wholly before it or after.
    async fn begin_under(&self, client: &Client, lease: &BuildLease) -> Result<(), KnowledgeError> {
        client.batch_execute("BEGIN; SET LOCAL statement_timeout = 0").await?;
        let check =
            format!("SELECT 1 FROM {}.build_lease WHERE token = $1 AND holder <> '' FOR UPDATE", self.schema);
        if client.query_typed(&check, &[(&lease.token, Type::INT8)]).await?.is_empty() {
            client.batch_execute("ROLLBACK").await?;
            return Err(KnowledgeError::LeaseLost);
        }
        Ok(())
    }

    /// Writes what differs. A stored record whose content is not what its hash says differs.
    async fn save_records(&self, client: &Client, base: &PreparedBase) -> Result<Changes, KnowledgeError> {
        let schema = &self.schema;
        let mut changes = Changes::default();
        let read = format!(
            "SELECT id, hash, encode(sha256(convert_to(body, 'UTF8')), 'hex') = hash FROM {schema}.records"
        );
        let rows = client.query_typed(&read, &[]).await?;
        let mut old: HashMap<&str, (&str, bool)> =
            rows.iter().map(|row| (row.get(0), (row.get(1), row.get(2)))).collect();
        let mut fresh = Vec::new();
        for ((id, body), hash) in base.saved.records().zip(&base.hashes) {
            match old.remove(id) {
                Some((same, true)) if same == hash => {
                    changes.unchanged += 1;
                    continue;
                }
                Some(_) => changes.changed += 1,
                None => changes.added += 1,
            }
            fresh.push((id, hash, body));
        }
        changes.removed = old.len();
        if !fresh.is_empty() {
            client
                .batch_execute(
                    "CREATE TEMP TABLE fresh_records (id text COLLATE \"C\", hash text, body text) ON COMMIT DROP",
                )
                .await?;
            copy_rows(client, "fresh_records (id, hash, body)", 3, fresh.len(), |at, row| {
                let (id, hash, body) = fresh[at];
                [id, hash, body].iter().for_each(|field| row.field(field.as_bytes()));
            })
            .await?;
            let put = format!(
                "INSERT INTO {schema}.records (id, hash, body) SELECT id, hash, body FROM fresh_records
                 ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, body = excluded.body"
            );
            client.batch_execute(&put).await?;
        }
        if !old.is_empty() {
            let gone: Vec<&str> = old.into_keys().collect();
            let delete = format!("DELETE FROM {schema}.records WHERE id = ANY ($1)");
            client.execute_typed(&delete, &[(&gone, Type::TEXT_ARRAY)]).await?;
        }
        Ok(changes)
    }

    /// Whether the current base has the same records, vectors and sound parts.
    async fn is_stored(
        &self,
        client: &Client,
        base: &PreparedBase,
        current: Option<&Generation>,
        embeddings: Option<&str>,
    ) -> Result<bool, KnowledgeError> {
        let is_same = current.is_some_and(|current| {
            current.records_digest == base.digest
                && current.model.as_ref() == base.saved.model()
                && current.passages == base.saved.keys().len()
                && current.embeddings.as_deref() == embeddings
        });
        if !is_same {
            return Ok(false);
        }
        for (name, own) in [("index", Some(&base.index)), ("passages", base.passages.as_ref())] {
            let stored = self.read_part(client, name).await?;
            let same = match (&stored, own) {
                (Some(stored), Some(own)) => stored.stored == own.stored && stored.content == own.content,
                (None, None) => true,
                _ => false,
            };
            if !same {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn save_part(
        &self,
        client: &Client,
        name: &str,
        part: Option<&Part>,
    ) -> Result<(), KnowledgeError> {
        let schema = &self.schema;
        let delete = format!("DELETE FROM {schema}.parts WHERE name = $1");
        client.execute_typed(&delete, &[(&name, Type::TEXT)]).await?;
        let Some(part) = part else { return Ok(()) };
        let mut pieces = vec![&part.stored[..]];
        pieces.extend(part.content.chunks(MAX_PIECE_BYTES));
        let target = format!("{schema}.parts (name, number, bytes)");
        copy_rows(client, &target, 3, pieces.len(), |number, row| {
            row.field(name.as_bytes());
            row.field(&(number as i32).to_be_bytes());
            row.field(pieces[number]);
        })
        .await?;
        Ok(())
    }

    async fn save_generation(
        &self,
        client: &Client,
        base: &PreparedBase,
        sources: &Sources,
        embeddings: Option<&str>,
        number: i64,
    ) -> Result<(), KnowledgeError> {
        let schema = &self.schema;
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let model: Option<String> =
            base.saved.model().map(|model: &EmbeddingModel| serde_json::json!(model).to_string());
        let put = format!(
            "INSERT INTO {schema}.generation
                 (number, fingerprint, left_out, records, record_bytes, passages, records_digest, model, embeddings)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
             ON CONFLICT (one) DO UPDATE SET number = excluded.number, fingerprint = excluded.fingerprint,
                 left_out = excluded.left_out, records = excluded.records, record_bytes = excluded.record_bytes,
                 passages = excluded.passages, records_digest = excluded.records_digest, model = excluded.model,
                 embeddings = excluded.embeddings"
        );
        client
            .execute_typed(
                &put,
                &[
                    (&number, Type::INT8),
                    (&sources.fingerprint, Type::TEXT),
                    (&count(sources.left_out), Type::INT8),
                    (&count(base.hashes.len()), Type::INT8),
                    (&count(base.record_bytes), Type::INT8),
                    (&count(base.saved.keys().len()), Type::INT8),
                    (&&base.digest[..], Type::BYTEA),
                    (&model, Type::TEXT),
                    (&embeddings, Type::TEXT),
                ],
            )
            .await?;
        Ok(())
    }

    /// Deletes what neither this base nor the one before it needs: nodes search that until they have loaded this.
    pub(crate) async fn clean_up(
        &self,
        client: &Client,
        base: &PreparedBase,
        before: &Before,
        embeddings: Option<&str>,
        lease: &BuildLease,
    ) -> Result<(), KnowledgeError> {
        let Before { generation: before, keys } = before;
        let before = before.as_ref();
        let old_table = before.and_then(|before| before.embeddings.as_deref());
        let tables: Vec<&str> = [embeddings, old_table].into_iter().flatten().collect();
        self.begin_under(client, lease).await?;
        self.drop_other_embeddings(client, &tables).await?;
        // Without a model there are no new vectors, and those in the database are for a later build.
        if let Some(model) = base.saved.model() {
            let mut used: BTreeSet<Key> = base.saved.keys().iter().copied().collect();
            used.extend(keys);
            let models: Vec<&EmbeddingModel> = [Some(model), before.and_then(|before| before.model.as_ref())]
                .into_iter()
                .flatten()
                .collect();
            self.delete_unused_vectors(client, &models, &used).await?;
        }
        Ok(client.batch_execute("COMMIT").await?)
    }
}
