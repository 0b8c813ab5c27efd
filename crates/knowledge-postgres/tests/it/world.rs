//! A database, small records, and a model whose meaning is in the letters.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quarterdeck_contracts::{
    EmbedError, Embedder, EmbeddingModel, Knowledge, KnowledgeQuery, KnowledgeRecord, Namespace,
    SearchResults,
};
use quarterdeck_knowledge::saved::Sources;
use quarterdeck_knowledge::{KnowledgeBase, ScoreThresholds};
use quarterdeck_knowledge_postgres::{
    BuildRequest, Built, DEFAULT_SCHEMA, KnowledgeDatabase, KnowledgeError, Loaded,
};
use quarterdeck_postgres::{Database, PostgresSettings};
use quarterdeck_testkit::{PostgresServer, PostgresVersion};

pub(crate) const DIMENSION: usize = 24;

/// Runs a test on a new database of each version.
pub(crate) fn on_each_version<F: Future<Output = ()>>(test: impl Fn(TestDatabase) -> F) {
    PostgresVersion::ALL.into_iter().for_each(|version| on_version(version, &test));
}

/// Runs a test on a new database, if that version is installed.
pub(crate) fn on_version<F: Future<Output = ()>>(version: PostgresVersion, test: impl Fn(TestDatabase) -> F) {
    if let Some(server) = PostgresServer::shared(version) {
        let url = server.create_database();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(test(TestDatabase { server, url }));
        // A model that still computes is not waited for.
        runtime.shutdown_background();
    }
}

pub(crate) struct TestDatabase {
    server: &'static PostgresServer,
    pub(crate) url: String,
}

impl TestDatabase {
    /// The same server under another address.
    pub(crate) fn at(&self, url: String) -> Self {
        Self { server: self.server, url }
    }

    /// What a node has. Up to `limit` passages are searched in its memory.
    pub(crate) async fn node(&self, limit: usize) -> KnowledgeDatabase {
        let database = Database::connect(PostgresSettings::from_url(&self.url).unwrap()).unwrap();
        KnowledgeDatabase::open(database, DEFAULT_SCHEMA, limit).await.unwrap()
    }

    pub(crate) fn execute(&self, sql: &str) -> String {
        let name = self.url.rsplit('/').next().unwrap().split('?').next().unwrap();
        self.server.execute(name, sql)
    }
}

/// Counts pairs of letters, and how many texts it was given.
pub(crate) struct Letters {
    model: EmbeddingModel,
    pub(crate) embedded: AtomicUsize,
    pub(crate) pause: Duration,
}

impl Letters {
    pub(crate) fn new(digest: &str) -> Arc<Self> {
        Self::with_pause(digest, Duration::ZERO)
    }

    pub(crate) fn with_pause(digest: &str, pause: Duration) -> Arc<Self> {
        let model = EmbeddingModel { name: "letters".into(), dimension: DIMENSION, digest: digest.into() };
        Arc::new(Self { model, embedded: AtomicUsize::new(0), pause })
    }

    pub(crate) fn embedded(&self) -> usize {
        self.embedded.load(Ordering::SeqCst)
    }
}

impl Embedder for Letters {
    fn model(&self) -> &EmbeddingModel {
        &self.model
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.embedded.fetch_add(texts.len(), Ordering::SeqCst);
        std::thread::sleep(self.pause);
        if texts.iter().any(|text| text.contains("unspeakable")) {
            return Err(EmbedError("it will not".into()));
        }
        let embed = |text: &&str| {
            let mut vector = vec![0.01_f32; DIMENSION];
            for pair in text.as_bytes().windows(2) {
                vector[(usize::from(pair[0]) * 7 + usize::from(pair[1])) % DIMENSION] += 1.0;
            }
            vector
        };
        Ok(texts.iter().map(embed).collect())
    }
}

pub(crate) fn record(id: &str, title: &str, text: &str) -> KnowledgeRecord {
    let record = serde_json::json!({
        "id": id, "type": "doc", "namespace": "studio", "title": title, "text": text,
    });
    serde_json::from_value(record).unwrap()
}

/// Records of few words. Every second has the tag `half`, every hundredth `few`, one `one`.
pub(crate) fn records(count: usize) -> Vec<KnowledgeRecord> {
    let words = ["ice", "hull", "dogs", "north", "sledge", "lamp", "captain", "bear", "fog", "rope", "tide"];
    let word = |at: usize| words[at * 7_919 % words.len()];
    let make = |at: usize| {
        let text = format!("{} {} {at:x} {}", word(at), word(at / 11 + 3), word(at / 121 + 5));
        let mut record = record(&format!("doc:{at:06}"), &format!("{} {at}", word(at / 7)), &text);
        record.tags = [(at.is_multiple_of(2), "half"), (at.is_multiple_of(100), "few"), (at == 7, "one")]
            .into_iter()
            .filter(|(has, _)| *has)
            .map(|(_, tag)| tag.to_owned())
            .collect();
        record
    };
    (0..count).map(make).collect()
}

pub(crate) async fn build(
    node: &KnowledgeDatabase,
    records: &[KnowledgeRecord],
    embedder: Option<Arc<Letters>>,
) -> Result<Built, KnowledgeError> {
    let request = BuildRequest {
        records: records.to_vec(),
        embedder: embedder.map(|embedder| embedder as Arc<dyn Embedder>),
        sources: Sources { fingerprint: "f".into(), left_out: 1 },
        holder: "test".into(),
    };
    node.build(request, Box::new(|_| {}), &mut |_| {}).await
}

pub(crate) async fn load(node: &KnowledgeDatabase) -> Option<Loaded> {
    node.load(ScoreThresholds::NONE).await.unwrap()
}

pub(crate) fn ask(question: &str, top_k: usize, tags: &[&str]) -> KnowledgeQuery {
    let mut query = KnowledgeQuery {
        query: question.to_owned(),
        namespace: Namespace::Studio,
        filters: Default::default(),
        top_k,
        include_snippets: true,
        snippet_length: 300,
    };
    query.filters.tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
    query
}

pub(crate) async fn search(base: &KnowledgeBase, query: KnowledgeQuery) -> SearchResults {
    let mut found = base.search(query).await.unwrap();
    found.took_ms = 0.0;
    found
}
