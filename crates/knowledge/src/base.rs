//! The base as others use it: searched while the next one is built, and swapped whole.

use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use quarterdeck_contracts::handler::{BoxFuture, CapabilityError, CapabilityErrorCode};
use quarterdeck_contracts::{
    Embedder, EmbeddingModel, Found, Knowledge, KnowledgeQuery, KnowledgeRecord, Namespace, Namespaces,
    RecordKind,
};

use crate::cache::QueryCache;
use crate::search::{Floor, Meaning, search};
use crate::snapshot::{BuildError, KnownVectors, Progress, Snapshot};
use crate::vectors::unit;
use crate::worker::Worker;

/// How many records may be asked for by id at once.
const MOST_IDS: usize = 1_000;
/// How many ids are named when one is unknown.
const MOST_NEAR: usize = 3;

/// Records in memory, found by words and, with a model, by meaning.
#[derive(Clone)]
pub struct KnowledgeBase {
    shared: Arc<Shared>,
}

struct Shared {
    current: RwLock<Arc<Snapshot>>,
    /// Held while the next base is built, so that the last one asked for is the last one in place.
    building: Mutex<()>,
    embedder: Option<(Arc<dyn Embedder>, Worker)>,
    questions: QueryCache,
    floor: Floor,
}

/// What a base holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// Records in all.
    pub records: usize,
    /// By namespace and type, where there are any.
    pub by_kind: Vec<(Namespace, RecordKind, usize)>,
    /// Passages with vectors.
    pub passages: usize,
    /// Different stems.
    pub terms: usize,
    /// What made the vectors, if there are any.
    pub model: Option<EmbeddingModel>,
}

impl KnowledgeBase {
    /// A base of these records. Without an embedder it searches by words alone, and says so in every answer. Vectors
    /// in `known` are taken instead of computed, if they are of the same model.
    pub fn from_records(
        records: Vec<KnowledgeRecord>,
        embedder: Option<Arc<dyn Embedder>>,
        known: Option<&KnownVectors>,
    ) -> Result<Self, BuildError> {
        Self::build(records, embedder, known, Floor::default(), &mut |_| {})
    }

    /// The same with a floor of one's own, and word of how far it has come.
    pub fn build(
        records: Vec<KnowledgeRecord>,
        embedder: Option<Arc<dyn Embedder>>,
        known: Option<&KnownVectors>,
        floor: Floor,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, BuildError> {
        let known = |model: &EmbeddingModel, key: &str| {
            known.filter(|known| known.model == *model)?.vectors.get(key).cloned()
        };
        let snapshot = Snapshot::build(records, embedder.as_deref(), known, progress)?;
        // A machine that cannot start a thread answers by words.
        let embedder = embedder.and_then(|embedder| {
            let worker = Worker::new(Arc::clone(&embedder)).ok()?;
            Some((embedder, worker))
        });
        let shared = Shared {
            current: RwLock::new(Arc::new(snapshot)),
            building: Mutex::new(()),
            embedder,
            questions: QueryCache::default(),
            floor,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Puts other records in place of these. Searches see the old base until the new one is complete; passages that
    /// did not change keep their vectors. On failure nothing changes.
    pub fn replace(
        &self,
        records: Vec<KnowledgeRecord>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), BuildError> {
        let _building = self.shared.building.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.current();
        let rows = old.vectors.as_ref().map(|vectors| vectors.by_key());
        let known = |model: &EmbeddingModel, key: &str| {
            let of_model = old.vectors.as_ref().filter(|vectors| vectors.model() == model)?;
            Some(of_model.row(*rows.as_ref()?.get(key)?).to_vec())
        };
        let embedder = self.shared.embedder.as_ref().map(|(embedder, _)| embedder.as_ref());
        let next = Snapshot::build(records, embedder, known, progress)?;
        *self.shared.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        Ok(())
    }

    /// Every vector, to be given to the next base.
    pub fn known_vectors(&self) -> Option<KnownVectors> {
        let current = self.current();
        let vectors = current.vectors.as_ref()?;
        let by_key = vectors.by_key().into_iter();
        let owned = by_key.map(|(key, row)| (key.to_owned(), vectors.row(row).to_vec())).collect();
        Some(KnownVectors { model: vectors.model().clone(), vectors: owned })
    }

    /// Every record, sorted by id.
    pub fn records(&self) -> Vec<KnowledgeRecord> {
        self.current().index.records().to_vec()
    }

    /// What it holds.
    pub fn stats(&self) -> Stats {
        let current = self.current();
        let records = current.index.records();
        let pairs = Namespace::ALL.into_iter().flat_map(|one| RecordKind::ALL.map(|kind| (one, kind)));
        let count = |(namespace, kind)| {
            let is_one = |record: &&KnowledgeRecord| record.namespace == namespace && record.kind == kind;
            (namespace, kind, records.iter().filter(is_one).count())
        };
        Stats {
            records: records.len(),
            by_kind: pairs.map(count).filter(|(.., count)| *count > 0).collect(),
            passages: current.vectors.as_ref().map_or(0, |vectors| vectors.rows()),
            terms: current.index.terms(),
            model: current.vectors.as_ref().map(|vectors| vectors.model().clone()),
        }
    }

    fn current(&self) -> Arc<Snapshot> {
        self.shared.current()
    }
}

impl Shared {
    fn current(&self) -> Arc<Snapshot> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    async fn search(&self, asked: KnowledgeQuery) -> Result<Found, CapabilityError> {
        let started = Instant::now();
        let question = self.meaning_of(&asked.query).await;
        let current = self.current();
        let meaning = match (&current.vectors, &question) {
            (Some(vectors), Some(question)) => Some(Meaning { vectors, question }),
            _ => None,
        };
        let mut found = search(&current.index, meaning, self.floor, &asked)
            .map_err(|error| CapabilityError::new(CapabilityErrorCode::InvalidArgument, error.to_string()))?;
        found.took_ms = started.elapsed().as_secs_f64() * 1e3;
        Ok(found)
    }

    /// The vector of a question; none without a model, or when the model has nothing to say about it.
    async fn meaning_of(&self, question: &str) -> Option<Arc<[f32]>> {
        let (embedder, worker) = self.embedder.as_ref()?;
        let normal = QueryCache::normal(question);
        if let Some(vector) = self.questions.find(&normal) {
            return Some(vector);
        }
        let vector = worker.embed(normal.clone()).await.ok()?;
        let vector: Arc<[f32]> = unit(embedder.model(), &vector).ok()?.into();
        self.questions.keep(normal, Arc::clone(&vector));
        Some(vector)
    }
}

impl Knowledge for KnowledgeBase {
    fn search(&self, query: KnowledgeQuery) -> BoxFuture<Result<Found, CapabilityError>> {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move { shared.search(query).await })
    }

    fn get(
        &self,
        ids: Vec<String>,
        readable: Namespaces,
    ) -> BoxFuture<Result<Vec<KnowledgeRecord>, CapabilityError>> {
        let found = get(self.current().index.records(), &ids, &readable);
        Box::pin(std::future::ready(found))
    }
}

/// Records by id. One that may not be read is one that does not exist, so that ids tell nothing.
fn get(
    records: &[KnowledgeRecord],
    ids: &[String],
    readable: &Namespaces,
) -> Result<Vec<KnowledgeRecord>, CapabilityError> {
    if ids.len() > MOST_IDS {
        let message = format!("at most {MOST_IDS} records can be asked for at once");
        return Err(CapabilityError::new(CapabilityErrorCode::InvalidArgument, message));
    }
    let find = |id: &String| {
        let at = records.binary_search_by(|record| record.id.as_str().cmp(id)).ok();
        let record = at.and_then(|at| records.get(at)).filter(|record| readable.contains(&record.namespace));
        record.cloned().ok_or_else(|| unknown(records, id, readable))
    };
    ids.iter().map(find).collect()
}

fn unknown(records: &[KnowledgeRecord], id: &str, readable: &Namespaces) -> CapabilityError {
    let shown: String = id.chars().filter(|letter| !letter.is_control()).take(80).collect();
    let mut message = format!("there is no record `{shown}`");
    let near = nearest_ids(records, id, readable);
    if !near.is_empty() {
        // Writing to a string cannot fail.
        let _ = write!(message, "; the nearest ids are {}", near.join(", "));
    }
    CapabilityError::new(CapabilityErrorCode::NotFound, message)
}

fn nearest_ids<'a>(records: &'a [KnowledgeRecord], id: &str, readable: &Namespaces) -> Vec<&'a str> {
    let length = id.chars().count();
    if length > 100 {
        return Vec::new();
    }
    let reach = (length / 3).max(2);
    let readable = records.iter().filter(|record| readable.contains(&record.namespace));
    let mut near: Vec<(usize, &str)> = readable
        .filter(|record| record.id.len().abs_diff(id.len()) <= 4 * reach)
        .map(|record| (strsim::osa_distance(id, &record.id), record.id.as_str()))
        .filter(|(slips, _)| *slips <= reach)
        .collect();
    near.sort_unstable();
    near.truncate(MOST_NEAR);
    near.into_iter().map(|(_, id)| id).collect()
}
