//! The set, the server, and how searches are timed.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quarterdeck_contracts::{
    Embedder, Knowledge, KnowledgeQuery, KnowledgeRecord, Namespace, RecordFilters, SearchResults,
};
use quarterdeck_embedding::Model;
use quarterdeck_knowledge::eval::{Judgements, load_corpus, load_qrels, load_queries};
use quarterdeck_knowledge::saved::Sources;
use quarterdeck_knowledge::store::KnowledgeFile;
use quarterdeck_knowledge::{KnowledgeBase, ScoreThresholds};
use quarterdeck_knowledge_postgres::{BuildRequest, Built, DEFAULT_SCHEMA, KnowledgeDatabase};
use quarterdeck_postgres::{Database, PostgresSettings};
use quarterdeck_testkit::{PostgresServer, PostgresVersion};
use serde_json::{Value, json};

/// A judged set with the vectors of a real model.
pub(crate) struct Set {
    pub(crate) records: Vec<KnowledgeRecord>,
    pub(crate) questions: Vec<(String, String)>,
    pub(crate) judgements: Judgements,
    pub(crate) model: Arc<dyn Embedder>,
    /// In memory, searched without thresholds.
    pub(crate) base: KnowledgeBase,
}

impl Set {
    pub(crate) fn load(folder: &Path, model: &Path, vectors: &Path) -> Self {
        let records = load_corpus(&folder.join("corpus.jsonl")).unwrap();
        let judgements = load_qrels(&folder.join("qrels.tsv")).unwrap();
        let mut questions = load_queries(&folder.join("queries.jsonl")).unwrap();
        questions.retain(|(id, _)| judgements.contains_key(id));
        let model: Arc<dyn Embedder> = Arc::new(Model::load(model).unwrap());
        let mut file = KnowledgeFile::open(vectors).unwrap().file;
        let (sources, thresholds) = (Sources::default(), ScoreThresholds::NONE);
        let built =
            file.build(records.clone(), Some(model.clone()), thresholds, &sources, &mut |_| {}).unwrap();
        Self { records, questions, judgements, model, base: built.0 }
    }
}

/// A server with the memory that a large index wants.
pub(crate) fn server() -> PostgresServer {
    let settings =
        ["shared_buffers=2GB", "maintenance_work_mem=4GB", "max_wal_size=16GB", "checkpoint_timeout=1h"];
    PostgresServer::start_with(PostgresVersion::V18, &settings)
        .expect("`scripts/postgres` has installed a server")
}

/// A node that keeps so many passages in memory.
pub(crate) async fn node(url: &str, limit: usize) -> KnowledgeDatabase {
    let database = Database::connect(PostgresSettings::from_url(url).unwrap()).unwrap();
    KnowledgeDatabase::open(database, DEFAULT_SCHEMA, limit).await.unwrap()
}

pub(crate) async fn build(
    node: &KnowledgeDatabase,
    records: Vec<KnowledgeRecord>,
    model: Arc<dyn Embedder>,
) -> Built {
    let request = BuildRequest {
        records,
        embedder: Some(model),
        sources: Sources::default(),
        holder: "bench".to_owned(),
    };
    node.build(request, Box::new(|_| {}), &mut |_| {}).await.unwrap()
}

pub(crate) async fn open(node: &KnowledgeDatabase, model: &Arc<dyn Embedder>) -> KnowledgeBase {
    let base = node.load(ScoreThresholds::NONE).await.unwrap().unwrap().base.base;
    base.use_model(model.clone());
    base
}

pub(crate) fn query(question: &str, top_k: usize, tags: &[&str]) -> KnowledgeQuery {
    KnowledgeQuery {
        query: question.to_owned(),
        namespace: Namespace::Studio,
        filters: RecordFilters {
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            ..RecordFilters::default()
        },
        top_k,
        include_snippets: false,
        snippet_length: 0,
    }
}

pub(crate) async fn timed(base: &KnowledgeBase, query: KnowledgeQuery) -> (SearchResults, Duration) {
    let start = Instant::now();
    let found = base.search(query).await.unwrap();
    (found, start.elapsed())
}

pub(crate) fn percentiles(mut times: Vec<Duration>) -> Value {
    times.sort();
    let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)].as_secs_f64() * 1e3;
    json!({ "p50_ms": at(50), "p99_ms": at(99) })
}
