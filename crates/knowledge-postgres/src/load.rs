//! Loading: a finished base from the database, without building anything, all of it from one snapshot.

use std::pin::pin;
use std::sync::Arc;

use futures_util::TryStreamExt;
use quarterdeck_knowledge::ScoreThresholds;
use quarterdeck_knowledge::saved::{BaseReader, LoadedBase, LoadedVectors, Part, PassageList, VectorReader};
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use crate::source::PgvectorSource;
use crate::{Generation, KnowledgeDatabase, KnowledgeError};

/// A base that was loaded, and which one it is.
pub struct Loaded {
    pub base: LoadedBase,
    pub generation: Generation,
}

impl KnowledgeDatabase {
    /// The current base; `None` when nothing was ever built. It reads, so that a node which ends meanwhile leaves nothing
    /// behind.
    pub async fn load(&self, thresholds: ScoreThresholds) -> Result<Option<Loaded>, KnowledgeError> {
        let connection = self.database.dedicated().await?;
        let client = &connection.client;
        client
            .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0")
            .await?;
        let Some(generation) = self.read_generation(client).await? else { return Ok(None) };
        let reader = self.read_records(client, &generation).await?;
        let index = self.read_part(client, "index").await?;
        let passages = self.read_part(client, "passages").await?;
        let vectors = self.load_vectors(client, &generation, passages.as_ref()).await?;
        client.batch_execute("COMMIT").await?;
        let finish = move || reader.finish(index, passages.as_ref(), vectors, thresholds);
        let base = tokio::task::spawn_blocking(finish).await.map_err(|_| KnowledgeError::Stopped)?;
        let base = base.map_err(|error| KnowledgeError::Damaged(error.to_string()))?;
        if base.is_rebuilt {
            tracing::info!(
                "the index of the knowledge base was written by another version and built again here"
            );
        }
        if generation.model.is_some()
            && generation.passages <= self.max_passages_in_memory
            && base.base.stats().model.is_none()
        {
            tracing::warn!(
                "vectors of the knowledge base are missing; it is searched by words until it is built again"
            );
        }
        Ok(Some(Loaded { base, generation }))
    }

    async fn read_records(
        &self,
        client: &Client,
        generation: &Generation,
    ) -> Result<BaseReader, KnowledgeError> {
        let mut reader = BaseReader::with_capacity(generation.records, generation.record_bytes);
        let read = format!("SELECT id, hash, body FROM {}.records ORDER BY id", self.schema);
        let rows = client.query_typed_raw(&read, std::iter::empty::<(i32, Type)>()).await?;
        let mut rows = pin!(rows);
        while let Some(row) = rows.try_next().await? {
            let added = reader.record(row.get(0), row.get(1), row.get(2));
            added.map_err(|error| KnowledgeError::Damaged(error.to_string()))?;
        }
        Ok(reader)
    }

    /// Piece by piece: number 0 is the digest.
    pub(crate) async fn read_part(
        &self,
        client: &Client,
        name: &str,
    ) -> Result<Option<Part>, KnowledgeError> {
        let size = format!(
            "SELECT coalesce(sum(octet_length(bytes)), 0)::bigint FROM {}.parts WHERE name = $1 AND number > 0",
            self.schema
        );
        let size = client.query_typed(&size, &[(&name, Type::TEXT)]).await?;
        let size: i64 = size.first().map_or(0, |row| row.get(0));
        let read = format!("SELECT number, bytes FROM {}.parts WHERE name = $1 ORDER BY number", self.schema);
        let rows = client.query_typed_raw(&read, [(name.to_owned(), Type::TEXT)]).await?;
        let mut rows = pin!(rows);
        let mut part = Part {
            stored: Vec::new(),
            content: Vec::with_capacity(usize::try_from(size).unwrap_or_default()),
        };
        while let Some(row) = rows.try_next().await? {
            let piece: &[u8] = row.get(1);
            match row.get::<_, i32>(0) {
                0 => part.stored.extend_from_slice(piece),
                _ => part.content.extend_from_slice(piece),
            }
        }
        Ok((!part.stored.is_empty()).then_some(part))
    }

    async fn load_vectors(
        &self,
        client: &Client,
        generation: &Generation,
        passages: Option<&Part>,
    ) -> Result<LoadedVectors, KnowledgeError> {
        let list = passages.and_then(|part| PassageList::read(&part.content));
        let Some(list) = list.filter(|list| generation.model.as_ref() == Some(list.model())) else {
            return Ok(LoadedVectors::None);
        };
        let model = list.model().clone();
        if generation.passages <= self.max_passages_in_memory {
            let mut reader = VectorReader::new(list);
            let mut is_sound = true;
            self.each_vector(client, &model, |key, packed| is_sound &= reader.put(key, packed)).await?;
            if !is_sound {
                return Err(KnowledgeError::Damaged("a vector is not what was stored".to_owned()));
            }
            return Ok(LoadedVectors::InMemory(reader));
        }
        match &generation.embeddings {
            Some(table) => {
                let source = PgvectorSource::new(self.clone(), table.clone(), model);
                Ok(LoadedVectors::Elsewhere(list, Arc::new(source)))
            }
            None => {
                let (passages, limit) = (generation.passages, self.max_passages_in_memory);
                tracing::warn!(
                    passages,
                    limit,
                    "the knowledge base is too large for this node's memory and has no vectors in pgvector; it is searched by words"
                );
                Ok(LoadedVectors::None)
            }
        }
    }
}
