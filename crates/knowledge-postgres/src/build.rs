//! Building: once for all nodes, under a lease, and searched by none until it is complete.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join;
use quarterdeck_contracts::{Embedder, EmbeddingModel, KnowledgeRecord};
use quarterdeck_knowledge::saved::{Changes, PackedVector, Sources, build_keeping};
use quarterdeck_knowledge::{BuildError, KnowledgeBase, KnownVectors, Progress, ScoreThresholds};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_postgres::Client;

use crate::lease::BuildLease;
use crate::save::PreparedBase;
use crate::{Generation, KnowledgeDatabase, KnowledgeError, PgvectorError};

/// How much work an interrupted build may lose.
const SAVE_INTERVAL: Duration = Duration::from_secs(2);
/// Vectors that are saved at once, at the most.
const SAVE_BATCH: usize = 8_192;
/// Batches that wait to be saved; the model waits when there are more.
const MAX_PENDING_BATCHES: usize = 64;

/// What is to be built, and by whom.
pub struct BuildRequest {
    pub records: Vec<KnowledgeRecord>,
    /// Without one the base is searched by words.
    pub embedder: Option<Arc<dyn Embedder>>,
    pub sources: Sources,
    /// What other nodes that want to build are told.
    pub holder: String,
}

/// What a build came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    pub generation: i64,
    /// Whether it differs from the one before; the others need not load it otherwise.
    pub is_new: bool,
    pub changes: Changes,
    pub records: usize,
    pub meaning: Meaning,
}

/// How the base is searched by meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// There was no model.
    None,
    /// In every node.
    InMemory,
    /// In the database.
    Pgvector,
    /// Not at all, until this is mended and the base built again.
    Unavailable(PgvectorError),
}

impl KnowledgeDatabase {
    /// Builds a base of these records and makes it the current one. Waits while another node builds; `waiting` is told its
    /// name. Vectors that the database has are not made again.
    pub async fn build(
        &self,
        request: BuildRequest,
        progress: Box<dyn FnMut(Progress) + Send>,
        waiting: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Built, KnowledgeError> {
        let lease = self.take_lease(&request.holder, waiting).await?;
        let built = self.build_with(&lease, request, progress).await;
        let released = self.release_lease(lease).await;
        let built = built?;
        // The base is in place; another node would wait a little.
        if let Err(error) = released {
            tracing::warn!(%error, "the lease of the knowledge base was not given back");
        }
        Ok(built)
    }

    async fn build_with(
        &self,
        lease: &BuildLease,
        request: BuildRequest,
        progress: Box<dyn FnMut(Progress) + Send>,
    ) -> Result<Built, KnowledgeError> {
        let connection = self.database.dedicated().await?;
        let client = &connection.client;
        let before = self.read_before(client).await?;
        let sources = request.sources.clone();
        let (base, made) = self.make_base(client, request, progress).await?;
        let prepare = move || PreparedBase::new(&base);
        let prepared = tokio::task::spawn_blocking(prepare).await.map_err(|_| KnowledgeError::Stopped)?;
        let (meaning, embeddings) =
            self.place_vectors(client, &prepared, before.generation.as_ref(), lease).await?;
        let saved = self.save(client, &prepared, &sources, embeddings.as_deref(), made, lease).await?;
        if saved.is_new
            && let Err(error) = self.clean_up(client, &prepared, &before, embeddings.as_deref(), lease).await
        {
            // The next build does it.
            tracing::warn!(%error, "what older knowledge bases left in the database was not deleted");
        }
        let (generation, is_new, changes) = (saved.generation, saved.is_new, saved.changes);
        Ok(Built { generation, is_new, changes, records: prepared.hashes.len(), meaning })
    }

    /// The base in memory, with every vector in the database, and how many of those were not there before.
    async fn make_base(
        &self,
        client: &Client,
        request: BuildRequest,
        mut progress: Box<dyn FnMut(Progress) + Send>,
    ) -> Result<(KnowledgeBase, usize), KnowledgeError> {
        let BuildRequest { records, embedder, .. } = request;
        let model = embedder.as_ref().map(|embedder| embedder.model().clone());
        let known: Option<KnownVectors> = match &model {
            Some(model) => Some(self.known_vectors(client, model).await?),
            None => None,
        };
        let (sender, fresh) = mpsc::channel(MAX_PENDING_BATCHES);
        let building = tokio::task::spawn_blocking(move || {
            let mut keep = |vectors: Vec<PackedVector>| {
                sender.blocking_send(vectors).map_err(|_| "the database did not take them".to_owned())
            };
            let thresholds = ScoreThresholds::NONE;
            build_keeping(records, embedder, known.as_ref(), thresholds, &mut progress, &mut keep)
        });
        let saving = self.save_as_made(client, model.as_ref(), fresh);
        let (built, saved) = join(building, saving).await;
        let built: Result<KnowledgeBase, BuildError> = built.map_err(|_| KnowledgeError::Stopped)?;
        // What the database says explains why the build ended.
        let made = saved?;
        Ok((built?, made))
    }

    async fn save_as_made(
        &self,
        client: &Client,
        model: Option<&EmbeddingModel>,
        mut fresh: mpsc::Receiver<Vec<PackedVector>>,
    ) -> Result<usize, KnowledgeError> {
        let (mut pending, mut made) = (Vec::new(), 0);
        let mut last = Instant::now();
        while let Some(vectors) = fresh.recv().await {
            made += vectors.len();
            pending.extend(vectors);
            if pending.len() >= SAVE_BATCH || last.elapsed() >= SAVE_INTERVAL {
                self.save_pending(client, model, &mut pending).await?;
                last = Instant::now();
            }
        }
        self.save_pending(client, model, &mut pending).await?;
        Ok(made)
    }

    async fn save_pending(
        &self,
        client: &Client,
        model: Option<&EmbeddingModel>,
        pending: &mut Vec<PackedVector>,
    ) -> Result<(), KnowledgeError> {
        if let Some(model) = model.filter(|_| !pending.is_empty()) {
            self.save_vectors(client, model, pending).await?;
            pending.clear();
        }
        Ok(())
    }

    /// Decides where meaning is searched, and fills pgvector's table if it is there.
    async fn place_vectors(
        &self,
        client: &Client,
        prepared: &PreparedBase,
        current: Option<&Generation>,
        lease: &BuildLease,
    ) -> Result<(Meaning, Option<String>), KnowledgeError> {
        let passages = prepared.saved.keys().len();
        if prepared.saved.model().is_none() {
            return Ok((Meaning::None, None));
        }
        if passages <= self.max_passages_in_memory {
            return Ok((Meaning::InMemory, None));
        }
        match self.fill_embeddings(client, prepared, current, lease).await? {
            Ok(table) => Ok((Meaning::Pgvector, Some(table))),
            Err(error) => Ok((Meaning::Unavailable(error), None)),
        }
    }
}
