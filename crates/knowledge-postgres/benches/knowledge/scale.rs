//! Many records whose vectors are mixtures of real ones, and real questions.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use quarterdeck_contracts::{EmbedError, Embedder, EmbeddingModel, KnowledgeRecord};
use quarterdeck_knowledge::KnowledgeBase;
use quarterdeck_knowledge::saved::vector_from_packed;
use serde_json::{Value, json};

use crate::world::{Set, build, node, open, percentiles, query, server, timed};

const TOP_K: usize = 10;
/// Words of a record, taken from the set.
const WORDS: usize = 16;
/// One record in so many has the tag.
const TAGS: [(&str, usize); 4] =
    [("half", 2), ("twentieth", 20), ("hundredth", 100), ("ten-thousandth", 10_000)];

pub(crate) async fn measure(set: &Set, count: usize) -> Value {
    let server = server();
    let url = server.create_database();
    let model = Mixtures::embedder(set);
    let small = node(&url, 0).await;
    let start = Instant::now();
    build(&small, records(set, count), model.clone()).await;
    let built = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let pgvector = open(&small, &model).await;
    let loaded_words = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let memory = open(&node(&url, usize::MAX).await, &model).await;
    let loaded_all = start.elapsed().as_secs_f64();
    // A million takes a while: what was measured is printed as it comes.
    println!(
        "{}",
        json!({ "passages": count, "build_s": built, "load_words_s": loaded_words, "load_all_s": loaded_all })
    );
    let mut searches = serde_json::Map::new();
    let filters = TAGS.map(|(tag, share)| (vec![tag], count.div_ceil(share)));
    for (tags, matching) in [(Vec::new(), count)].into_iter().chain(filters).chain([(vec!["absent"], 0)]) {
        let compared = compare(set, &memory, &pgvector, &tags, matching).await;
        println!("{}", json!({ "tags": tags, "searches": compared }));
        searches.insert(tags.join("+"), compared);
    }
    json!({ "passages": count, "searches": searches })
}

/// Every question, of both; the first time embeds it and brings what it needs into memory.
async fn compare(
    set: &Set,
    memory: &KnowledgeBase,
    pgvector: &KnowledgeBase,
    tags: &[&str],
    matching: usize,
) -> Value {
    let (mut exact, mut asked) = (Vec::new(), Vec::new());
    let (mut found, mut all) = (0, 0);
    for (_, question) in &set.questions {
        timed(memory, query(question, TOP_K, tags)).await;
        timed(pgvector, query(question, TOP_K, tags)).await;
        let (here, time) = timed(memory, query(question, TOP_K, tags)).await;
        exact.push(time);
        let (there, time) = timed(pgvector, query(question, TOP_K, tags)).await;
        asked.push(time);
        assert!(!there.degraded, "it was searched by words");
        // A record without a word of the question and on the other side of its meaning does not match.
        assert!(here.results.len() <= matching.min(TOP_K), "{tags:?} {question}");
        assert_eq!(there.results.len(), here.results.len(), "{tags:?} {question}");
        let here: HashSet<&str> = here.results.iter().map(|hit| hit.record.id.as_str()).collect();
        found += there.results.iter().filter(|hit| here.contains(hit.record.id.as_str())).count();
        all += here.len();
    }
    let recall = if all == 0 { 1.0 } else { found as f64 / all as f64 };
    json!({ "memory": percentiles(exact), "pgvector": percentiles(asked), "recall_at_10": recall })
}

fn records(set: &Set, count: usize) -> Vec<KnowledgeRecord> {
    let words: Vec<&str> = set.records.iter().flat_map(|record| record.text.split_whitespace()).collect();
    let mut numbers = Numbers(11);
    let make = |at: usize| {
        let text: Vec<&str> = (0..WORDS).map(|_| words[numbers.below(words.len())]).collect();
        let mut record = set.records[0].clone();
        record.id = format!("doc:{at:07}");
        record.title = format!("{} {at}", words[numbers.below(words.len())]);
        record.text = text.join(" ");
        let has = |share: usize| at.is_multiple_of(share);
        record.tags =
            TAGS.iter().filter(|(_, share)| has(*share)).map(|(tag, _)| (*tag).to_owned()).collect();
        record
    };
    (0..count).map(make).collect()
}

/// Embeds questions of the set as the real model does, and any other text as a mixture of three real vectors.
struct Mixtures {
    model: EmbeddingModel,
    real: Arc<dyn Embedder>,
    vectors: Vec<Vec<f32>>,
    questions: HashSet<String>,
}

impl Mixtures {
    fn embedder(set: &Set) -> Arc<dyn Embedder> {
        let saved = set.base.saved();
        let dimension = set.model.model().dimension;
        let vector = |(at, key)| vector_from_packed(key, &saved.packed_vector(at), dimension).unwrap();
        Arc::new(Self {
            model: EmbeddingModel { digest: "mixtures".to_owned(), ..set.model.model().clone() },
            real: set.model.clone(),
            vectors: saved.keys().iter().enumerate().map(vector).collect(),
            questions: set.questions.iter().map(|(_, text)| normal(text)).collect(),
        })
    }

    fn mixture(&self, text: &str) -> Vec<f32> {
        let seed = text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut numbers = Numbers(seed);
        let mut mixed = vec![0_f32; self.model.dimension];
        for _ in 0..3 {
            let weight = numbers.below(1_000) as f32 / 1_000.0 + 0.1;
            let other = &self.vectors[numbers.below(self.vectors.len())];
            mixed.iter_mut().zip(other).for_each(|(sum, number)| *sum += weight * number);
        }
        mixed
    }
}

impl Embedder for Mixtures {
    fn model(&self) -> &EmbeddingModel {
        &self.model
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let embed = |text: &&str| match self.questions.contains(*text) {
            true => Ok(self.real.embed(&[text])?.remove(0)),
            false => Ok(self.mixture(text)),
        };
        texts.iter().map(embed).collect()
    }
}

/// One space between words, as questions are embedded.
fn normal(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}
