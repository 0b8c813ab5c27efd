//! The knowledge base that the nodes on one database share.
//!
//! The folder of records is read where `quarterdeck kb build` runs; the nodes serve what was built last, wherever that was.
//! A server builds by itself only where nothing was ever built: folders of several machines differ for a while whenever
//! they are changed, and nodes that each built their own would undo each other's work.

use std::path::Path;
use std::sync::Arc;

use quarterdeck_contracts::{Changes, Store};
use quarterdeck_knowledge::{KnowledgeBase, ScoreThresholds};
use quarterdeck_knowledge_postgres::{
    BuildRequest, Built, DEFAULT_SCHEMA, KnowledgeDatabase, Meaning, announce,
};

use super::knowledge::read_sources;
use super::{ProgressLines, embedder};
use crate::config::{LocalConfig, StoreConfig};
use crate::store_url::StoreUrl;
use crate::terminal::info;

/// The base in the database of a store, and this node's name.
#[derive(Clone)]
pub(crate) struct SharedKnowledge {
    database: KnowledgeDatabase,
    node: String,
}

impl SharedKnowledge {
    /// `None` where the store is a file of this machine.
    pub(crate) async fn open(
        store: &StoreConfig,
        node: &str,
        max_passages_in_memory: usize,
    ) -> anyhow::Result<Option<Self>> {
        let Some(StoreUrl::Postgres(address)) = &store.url else { return Ok(None) };
        let database = super::database(address, store)?;
        let database = KnowledgeDatabase::open(database, DEFAULT_SCHEMA, max_passages_in_memory).await?;
        Ok(Some(Self { database, node: node.to_owned() }))
    }

    /// The base of a command's configuration; `None` where the store is a file of this machine.
    pub(crate) async fn of(config: &LocalConfig) -> anyhow::Result<Option<Self>> {
        let LocalConfig { store, cluster, folders, .. } = config;
        Self::open(store, &cluster.node, folders.max_passages_in_memory).await
    }

    /// What was built last, and which one it is. An empty base where nothing was, or where it cannot be loaded now: the
    /// next look mends that.
    pub(crate) async fn load(&self) -> anyhow::Result<(KnowledgeBase, Option<i64>)> {
        match self.database.load(ScoreThresholds::default()).await {
            Ok(Some(loaded)) => Ok((loaded.base.base, Some(loaded.generation.number))),
            Ok(None) => Ok((empty()?, None)),
            Err(error) => {
                info(&format!(
                    "the knowledge base in the database is not used yet: {:#}",
                    anyhow::Error::new(error)
                ));
                Ok((empty()?, None))
            }
        }
    }

    /// What was built last, with the model that made its vectors if it is installed here.
    pub(crate) async fn find(&self) -> anyhow::Result<KnowledgeBase> {
        let loaded = self.database.load(ScoreThresholds::default()).await?;
        let Some(loaded) = loaded else {
            info("no knowledge base was built yet; `quarterdeck kb build` builds it");
            return empty();
        };
        let base = loaded.base.base;
        if let (Some(model), Some(embedder)) = (loaded.generation.model, embedder()) {
            if *embedder.model() != model {
                info("the vectors are of another model; run `quarterdeck kb build` to make new ones");
            }
            base.use_model(embedder);
        }
        Ok(base)
    }

    /// Builds a folder's records for all nodes.
    pub(crate) async fn build(&self, folder: &Path, lines: &ProgressLines) -> anyhow::Result<Built> {
        let folder = folder.to_owned();
        let read = tokio::task::spawn_blocking(move || anyhow::Ok((read_sources(&folder)?, embedder())));
        let ((records, sources), embedder) = read.await??;
        let request = BuildRequest { records, embedder, sources, holder: self.node.clone() };
        let waiting =
            &mut |holder: &str| info(&format!("waiting for {holder}, which builds the knowledge base"));
        Ok(self.database.build(request, Box::new(lines.clone().follow()), waiting).await?)
    }

    /// Tells the nodes of a new base. They find it by themselves a little later where that fails.
    pub(crate) async fn announce(&self, config: &LocalConfig, generation: i64) {
        let Some(url) = &config.store.url else { return };
        let told = async {
            let store = super::find_url(url, &config.store).await?;
            announce(&*store, generation);
            anyhow::Ok(store.close().await?)
        };
        if let Err(error) = told.await {
            tracing::debug!(error = format!("{error:#}"), "the new knowledge base was not announced");
        }
    }

    async fn build_first(&self, folder: &Path, store: &dyn Store, lines: &ProgressLines) {
        match self.database.generation().await {
            Ok(None) => {}
            // Another node was quicker, or the database is away: following finds out.
            _ => return,
        }
        match self.build(folder, lines).await {
            Ok(built) => {
                announce(store, built.generation);
                if let Meaning::Unavailable(error) = &built.meaning {
                    info(&error.to_string());
                }
            }
            Err(error) => info(&format!("the knowledge base could not be built: {error:#}")),
        }
    }
}

/// The base that a server searches, and where it is kept.
#[derive(Clone)]
pub(crate) struct ServedKnowledge {
    pub(crate) base: KnowledgeBase,
    /// In a database, that is.
    pub(crate) followed: Option<FollowedKnowledge>,
}

/// A base in a database, from which the one that is searched is kept up to date.
#[derive(Clone)]
pub(crate) struct FollowedKnowledge {
    pub(crate) shared: SharedKnowledge,
    /// The number of the generation that the base is of.
    pub(crate) loaded: Option<i64>,
    /// What tells of new generations.
    pub(crate) store: Arc<dyn Store>,
}

impl FollowedKnowledge {
    /// What a server runs: loads the model, builds what was never built, and follows what other nodes build.
    pub(crate) async fn run(self, base: KnowledgeBase, folder: Arc<Path>, lines: ProgressLines) {
        let Self { shared, loaded, store } = self;
        // Before anything is built, so that no announcement is missed.
        let changes: Changes = store.watch();
        if let Ok(Some(embedder)) = tokio::task::spawn_blocking(embedder).await {
            base.use_model(embedder);
        }
        if loaded.is_none() && folder.is_dir() {
            shared.build_first(&folder, &*store, &lines).await;
        }
        shared.database.follow(base, loaded, changes).await;
    }
}

fn empty() -> anyhow::Result<KnowledgeBase> {
    Ok(KnowledgeBase::from_records(Vec::new(), None, None)?)
}
