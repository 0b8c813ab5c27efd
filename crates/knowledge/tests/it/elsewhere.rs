//! Vectors that are kept and compared elsewhere: the same answers, as far as the other engine finds what is near.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use quarterdeck_contracts::handler::BoxFuture;
use quarterdeck_contracts::{EmbedError, Embedder, EmbeddingModel, KnowledgeQuery, KnowledgeRecord};
use quarterdeck_knowledge::saved::{
    BaseReader, Key, LoadedVectors, PackedVector, Part, PassageList, RecordsDigest, Scope, SourceError,
    VectorSource, hash_of, vector_from_packed,
};
use quarterdeck_knowledge::{KnowledgeBase, ScoreThresholds};

use crate::world::{ask, ids, record, search};

const DIMENSION: usize = 16;

/// A vector from the letters of a text: like texts have like vectors.
struct Letters(EmbeddingModel);

impl Letters {
    fn new() -> Arc<Self> {
        Arc::new(Self(EmbeddingModel { name: "letters".into(), dimension: DIMENSION, digest: "1".into() }))
    }
}

impl Embedder for Letters {
    fn model(&self) -> &EmbeddingModel {
        &self.0
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
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

/// Compares everything, as an index does that misses every seventh.
struct Source {
    vectors: Vec<PackedVector>,
    is_down: AtomicBool,
    compared: AtomicUsize,
    asked_index: AtomicUsize,
}

impl VectorSource for Source {
    fn nearest(&self, question: Arc<[f32]>, scope: Scope) -> BoxFuture<Result<Vec<Key>, SourceError>> {
        let (among, limit) = match scope {
            Scope::Only { keys, limit } => (keys, limit),
            Scope::Index { limit } => {
                self.asked_index.fetch_add(1, Ordering::SeqCst);
                let found = self.vectors.iter().map(|(key, _)| *key).filter(|key| key[0] % 7 != 0);
                (found.collect(), limit)
            }
        };
        self.compared.fetch_add(among.len(), Ordering::SeqCst);
        let cosine = |key: &Key| {
            let at = self.vectors.binary_search_by_key(key, |(key, _)| *key).unwrap();
            let vector = vector_from_packed(key, &self.vectors[at].1, DIMENSION).unwrap();
            vector.iter().zip(question.iter()).map(|(a, b)| a * b).sum::<f32>()
        };
        let mut found: Vec<(f32, Key)> = among.iter().map(|key| (cosine(key), *key)).collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found.truncate(limit);
        let found = found.into_iter().map(|(_, key)| key).collect();
        let answer = if self.is_down.load(Ordering::SeqCst) { Err(SourceError) } else { Ok(found) };
        Box::pin(std::future::ready(answer))
    }

    fn fetch(&self, keys: Vec<Key>) -> BoxFuture<Result<Vec<PackedVector>, SourceError>> {
        let found = self.vectors.iter().filter(|(key, _)| keys.binary_search(key).is_ok()).cloned().collect();
        let answer = if self.is_down.load(Ordering::SeqCst) { Err(SourceError) } else { Ok(found) };
        Box::pin(std::future::ready(answer))
    }
}

/// The base in memory, and the same one with its vectors elsewhere.
fn twins(records: Vec<KnowledgeRecord>) -> (KnowledgeBase, KnowledgeBase, Arc<Source>) {
    let thresholds = ScoreThresholds::NONE;
    let base = KnowledgeBase::build(records, Some(Letters::new()), None, thresholds, &mut |_| {}).unwrap();
    let saved = base.saved();
    let mut vectors: Vec<PackedVector> =
        saved.keys().iter().enumerate().map(|(at, key)| (*key, saved.packed_vector(at))).collect();
    vectors.sort();
    vectors.dedup();
    let source = Arc::new(Source {
        vectors,
        is_down: AtomicBool::new(false),
        compared: AtomicUsize::new(0),
        asked_index: AtomicUsize::new(0),
    });
    let (mut reader, mut digest) = (BaseReader::with_capacity(0, 0), RecordsDigest::default());
    for (id, body) in saved.records() {
        digest.add(&hash_of(body));
        reader.record(id, &hash_of(body), body).unwrap();
    }
    let digest = digest.finish();
    let index = Part::new(&digest, saved.index());
    let passages = Part::new(&digest, saved.passages().unwrap());
    let list = PassageList::read(&passages.content).unwrap();
    let elsewhere = LoadedVectors::Elsewhere(list, source.clone());
    let loaded = reader.finish(Some(index), Some(&passages), elsewhere, thresholds).unwrap();
    assert!(!loaded.is_rebuilt);
    loaded.base.use_model(Letters::new());
    (base, loaded.base, source)
}

fn records(count: usize) -> Vec<KnowledgeRecord> {
    let words = ["ice", "hull", "dogs", "north", "sledge", "lamp", "captain", "bear", "fog", "rope", "tide"];
    let word = |at: usize| words[at * 7_919 % words.len()];
    let make = |at: usize| {
        let text = format!("{} {} {at:x} {}", word(at), word(at / 11 + 3), word(at / 121 + 5));
        let mut record = record(&format!("doc:{at:06}"), &format!("{} {at}", word(at / 7)), &text);
        record.tags = [
            (!at.is_multiple_of(10), "most"),
            (at.is_multiple_of(20), "few"),
            (at.is_multiple_of(count / 2), "two"),
        ]
        .into_iter()
        .filter(|(has, _)| *has)
        .map(|(_, tag)| tag.to_owned())
        .collect();
        record
    };
    (0..count).map(make).collect()
}

fn tagged(question: &str, top_k: usize, tag: &str) -> KnowledgeQuery {
    let mut query = ask(question, top_k);
    query.filters.tags = vec![tag.to_owned()];
    query
}

#[test]
fn filters_return_as_many_as_match_wherever_the_vectors_are() {
    let (memory, elsewhere, source) = twins(records(24_000));
    for (tag, matching) in [("most", 21_600), ("few", 1_200), ("two", 2), ("none", 0)] {
        let query = tagged("the captain and the bear", 10, tag);
        let (here, there) = (search(&memory, query.clone()), search(&elsewhere, query));
        assert_eq!(there.results.len(), matching.min(10), "{tag}");
        assert!(!there.degraded && there.empty == here.empty, "{tag}");
        assert_eq!(there.without_filters.is_some(), here.without_filters.is_some(), "{tag}");
        let is_exact = matching <= 20_000;
        if is_exact {
            assert_eq!(ids(&there), ids(&here), "{tag}");
        }
        for (one, other) in here.results.iter().zip(&there.results) {
            assert!(!is_exact || (one.score - other.score).abs() < 1e-6, "{tag}");
        }
    }
    assert!(source.asked_index.load(Ordering::SeqCst) >= 1, "most of the records are for the index");
}

#[test]
fn an_engine_that_cannot_be_asked_leaves_the_words() {
    let (_, elsewhere, source) = twins(records(3_000));
    source.is_down.store(true, Ordering::SeqCst);
    let found = search(&elsewhere, ask("captain bear", 5));
    assert!(found.degraded && found.results.len() == 5);
    source.is_down.store(false, Ordering::SeqCst);
    assert!(!search(&elsewhere, ask("captain bear", 5)).degraded);
}

#[test]
fn records_of_many_passages_do_not_take_the_places_of_others() {
    let sentence = "The captain saw a bear in the fog beside the hull. ";
    let mut all = records(20);
    all.extend((0..3).map(|at| record(&format!("doc:long-{at}"), "Long", &sentence.repeat(8_000))));
    let (memory, elsewhere, _) = twins(all);
    let query = ask("captain bear fog", 30);
    assert_eq!(search(&memory, query.clone()).results.len(), search(&elsewhere, query).results.len());
}
