//! The base as others use it: searched while the next one is built, and swapped whole.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use quarterdeck_contracts::handler::{BoxFuture, CapabilityError, CapabilityErrorCode};
use quarterdeck_contracts::{
    Embedder, EmbeddingModel, Knowledge, KnowledgeQuery, KnowledgeRecord, Namespace, Namespaces, RecordKind,
    RecordListing, RecordPage, SearchResults,
};

use crate::cache::QueryCache;
use crate::get::get;
use crate::index::Doc;
use crate::list::list;
use crate::search::{ScoreThresholds, SearchError, SemanticQuery, search};
use crate::snapshot::{BuildError, BuildObserver, KnownVectors, Progress, Snapshot};
use crate::vectors::{VectorStorage, unit};
use crate::worker::Worker;

/// Records in memory, found by words and, with a model, by meaning.
#[derive(Clone)]
pub struct KnowledgeBase {
    shared: Arc<Shared>,
}

struct Shared {
    current: RwLock<Arc<Snapshot>>,
    /// Held while the next base is built, so that of two builds the one requested last ends up in place.
    building: Mutex<()>,
    model: RwLock<Option<Arc<LoadedModel>>>,
    thresholds: ScoreThresholds,
}

struct LoadedModel {
    embedder: Arc<dyn Embedder>,
    worker: Worker,
    questions: QueryCache,
}

/// A base that was kept, opened again.
pub struct LoadedBase {
    /// It has no model yet: [`KnowledgeBase::use_model`] gives it one.
    pub base: KnowledgeBase,
    /// Whether the index had to be built again, because another version wrote it or it was damaged.
    pub is_rebuilt: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    pub records: usize,
    /// By namespace and type, where there are any.
    pub by_kind: Vec<(Namespace, RecordKind, usize)>,
    /// Passages with vectors.
    pub passages: usize,
    pub terms: usize,
    /// What made the vectors, if there are any.
    pub model: Option<EmbeddingModel>,
}

impl KnowledgeBase {
    /// Without an embedder it searches by words alone, and says so in every answer. Vectors in `known` are taken
    /// instead of computed, if they are of the same model.
    pub fn from_records(
        records: Vec<KnowledgeRecord>,
        embedder: Option<Arc<dyn Embedder>>,
        known: Option<&KnownVectors>,
    ) -> Result<Self, BuildError> {
        Self::build(records, embedder, known, ScoreThresholds::default(), &mut |_| {})
    }

    /// [`Self::from_records`] with other thresholds, and progress.
    pub fn build(
        records: Vec<KnowledgeRecord>,
        embedder: Option<Arc<dyn Embedder>>,
        known: Option<&KnownVectors>,
        thresholds: ScoreThresholds,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, BuildError> {
        let mut observer = BuildObserver { progress, keep: &mut |_| Ok(()) };
        Self::build_observed(records, embedder, known, thresholds, &mut observer)
    }

    pub(crate) fn build_observed(
        records: Vec<KnowledgeRecord>,
        embedder: Option<Arc<dyn Embedder>>,
        known: Option<&KnownVectors>,
        thresholds: ScoreThresholds,
        observer: &mut BuildObserver<'_>,
    ) -> Result<Self, BuildError> {
        let known = known.filter(|known| embedder.as_ref().is_some_and(|own| *own.model() == known.model));
        let known = known.map(|known| (&known.rows, &known.at));
        let base =
            Self::from_snapshot(Snapshot::build(records, embedder.as_deref(), known, observer)?, thresholds);
        if let Some(embedder) = embedder {
            base.use_model(embedder);
        }
        Ok(base)
    }

    pub(crate) fn from_snapshot(snapshot: Snapshot, thresholds: ScoreThresholds) -> Self {
        let shared = Shared {
            current: RwLock::new(Arc::new(snapshot)),
            building: Mutex::new(()),
            model: RwLock::new(None),
            thresholds,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Sets the model, which may be loaded long after the base was opened. Questions are compared by meaning while the
    /// vectors of the base are this model's; the next base is built with it.
    pub fn use_model(&self, embedder: Arc<dyn Embedder>) {
        // A machine that cannot start a thread answers by words.
        let worker = Worker::new(Arc::clone(&embedder)).ok();
        let questions = QueryCache::default();
        let loaded = worker.map(|worker| Arc::new(LoadedModel { embedder, worker, questions }));
        *self.shared.model.write().unwrap_or_else(PoisonError::into_inner) = loaded;
    }

    /// Puts other records in place of these. Searches see the old base until the new one is complete; passages that
    /// did not change keep their vectors. On failure nothing changes.
    pub fn replace(
        &self,
        records: Vec<KnowledgeRecord>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), BuildError> {
        self.replace_observed(records, &mut BuildObserver { progress, keep: &mut |_| Ok(()) })
    }

    pub(crate) fn replace_observed(
        &self,
        records: Vec<KnowledgeRecord>,
        observer: &mut BuildObserver<'_>,
    ) -> Result<(), BuildError> {
        let _building = self.shared.building.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.current();
        let model = self.shared.model();
        let embedder = model.as_ref().map(|model| model.embedder.as_ref());
        let known = embedder.and_then(|embedder| old.vectors_by_key(embedder.model()));
        let known = known.as_ref().map(|(rows, at)| (*rows, at));
        let next = Snapshot::build(records, embedder, known, observer)?;
        *self.shared.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        Ok(())
    }

    /// Puts what was loaded in place of what is searched. The model stays.
    pub fn adopt(&self, loaded: LoadedBase) {
        let _building = self.shared.building.lock().unwrap_or_else(PoisonError::into_inner);
        *self.shared.current.write().unwrap_or_else(PoisonError::into_inner) = loaded.base.current();
    }

    pub fn model(&self) -> Option<EmbeddingModel> {
        self.shared.model().map(|model| model.embedder.model().clone())
    }

    /// Every vector, for the next base.
    pub fn known_vectors(&self) -> Option<KnownVectors> {
        let current = self.current();
        let model = current.vectors.as_ref()?.model().clone();
        let (rows, at) = current.vectors_by_key(&model)?;
        Some(KnownVectors { rows: rows.clone(), at, model })
    }

    /// Sorted by id.
    pub fn records(&self) -> Vec<KnowledgeRecord> {
        let current = self.current();
        let docs = 0..current.index.records.len() as Doc;
        docs.filter_map(|doc| current.index.records.get(doc).ok()).collect()
    }

    pub fn stats(&self) -> Stats {
        let current = self.current();
        let (index, vectors) = (&current.index, &current.vectors);
        let mut by_kind: BTreeMap<(Namespace, RecordKind), usize> = BTreeMap::new();
        for doc in 0..index.records.len() as Doc {
            *by_kind.entry(index.filters.namespace_and_kind(doc)).or_default() += 1;
        }
        Stats {
            records: index.records.len(),
            by_kind: by_kind.into_iter().map(|((namespace, kind), count)| (namespace, kind, count)).collect(),
            passages: vectors.as_ref().map_or(0, VectorStorage::passages),
            terms: index.terms(),
            model: vectors.as_ref().map(|vectors| vectors.model().clone()),
        }
    }

    pub(crate) fn current(&self) -> Arc<Snapshot> {
        self.shared.current()
    }
}

impl Shared {
    fn current(&self) -> Arc<Snapshot> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn model(&self) -> Option<Arc<LoadedModel>> {
        self.model.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn search(&self, query: KnowledgeQuery) -> Result<SearchResults, CapabilityError> {
        let started = Instant::now();
        let current = self.current();
        let question = self.embed_question(&query.query, &current).await;
        let semantic = match (&current.vectors, &question) {
            (Some(vectors), Some(question)) => Some(SemanticQuery { vectors, question }),
            _ => None,
        };
        let found = search(&current.index, semantic, self.thresholds, &query).await;
        let mut found = found.map_err(|error| {
            let code = match error {
                SearchError::Filter(_) => CapabilityErrorCode::InvalidArgument,
                SearchError::Record(_) => CapabilityErrorCode::NotAvailable,
            };
            CapabilityError::new(code, error.to_string())
        })?;
        found.took_ms = started.elapsed().as_secs_f64() * 1e3;
        Ok(found)
    }

    /// None without a model whose vectors the base has, or when the model fails.
    async fn embed_question(&self, question: &str, current: &Snapshot) -> Option<Arc<[f32]>> {
        let model = self.model()?;
        let description = model.embedder.model();
        if current.vectors.as_ref().is_none_or(|vectors| vectors.model() != description) {
            return None;
        }
        let normal = QueryCache::normalise(question);
        if let Some(vector) = model.questions.get(&normal) {
            return Some(vector);
        }
        let vector = model.worker.embed(normal.clone()).await?;
        let vector: Arc<[f32]> = unit(description, &vector).ok()?.into();
        model.questions.insert(normal, Arc::clone(&vector));
        Some(vector)
    }
}

impl Knowledge for KnowledgeBase {
    fn search(&self, query: KnowledgeQuery) -> BoxFuture<Result<SearchResults, CapabilityError>> {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move { shared.search(query).await })
    }

    fn get(
        &self,
        ids: Vec<String>,
        readable: Namespaces,
    ) -> BoxFuture<Result<Vec<KnowledgeRecord>, CapabilityError>> {
        let found = get(&self.current().index, &ids, &readable);
        Box::pin(std::future::ready(found))
    }

    fn list(&self, listing: RecordListing) -> BoxFuture<Result<RecordPage, CapabilityError>> {
        let page = list(&self.current().index, &listing);
        Box::pin(std::future::ready(Ok(page)))
    }
}
