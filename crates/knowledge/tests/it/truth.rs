//! Filters against the truth: every record that passes is scored by plain loops over what the recipe says, and the
//! answer must hold the same records. Nothing here is taken from the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use quarterdeck_contracts::{
    EmbedError, Embedder, EmbeddingModel, KnowledgeQuery, KnowledgeRecord, RecordFilters,
};
use quarterdeck_knowledge::{KnowledgeBase, ScoreThresholds};

use crate::world::{ask, record, search};

/// Words that are their own stems, and no stop words.
const WORDS: [&str; 14] = [
    "ice", "ship", "wind", "dog", "ski", "pole", "north", "south", "lamp", "food", "map", "seal", "bear",
    "sledg",
];
const DIMENSION: usize = 24;
/// How far two ways of adding the same numbers may be apart.
const ROUNDING: f64 = 1e-5;

struct Hashes(EmbeddingModel);

impl Hashes {
    fn embedder() -> Arc<dyn Embedder> {
        let (name, digest) = ("hashes".into(), "hashes".into());
        Arc::new(Self(EmbeddingModel { name, dimension: DIMENSION, digest }))
    }
}

impl Embedder for Hashes {
    fn model(&self) -> &EmbeddingModel {
        &self.0
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        Ok(texts.iter().map(|text| vector(text)).collect())
    }
}

/// A vector that has nothing to do with what the text means, but always the same.
fn vector(text: &str) -> Vec<f32> {
    let mut state =
        text.bytes().fold(7_u64, |state, byte| state.wrapping_mul(1_099_511_628_211) ^ u64::from(byte));
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 24) as f32 - 0.4
    };
    let numbers: Vec<f32> = (0..DIMENSION).map(|_| next()).collect();
    let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
    numbers.into_iter().map(|number| number / length).collect()
}

/// The vector as the base stores it: in 127 steps of its largest number.
fn quantised(text: &str) -> Vec<f64> {
    let numbers = vector(text);
    let step = numbers.iter().fold(0_f32, |largest, number| largest.max(number.abs())) / 127.0;
    numbers.iter().map(|number| f64::from((number / step).round()) * f64::from(step)).collect()
}

/// BM25 over title (twice), tags and text of every record of the base.
fn bm25(records: &[KnowledgeRecord], terms: &BTreeSet<&str>) -> (Vec<f64>, f64) {
    let words = |record: &KnowledgeRecord| -> Vec<String> {
        let title = record.title.split(' ');
        let all = title.clone().chain(title).chain(record.text.split(' ')).map(str::to_owned);
        all.chain(record.tags.iter().cloned()).collect()
    };
    let all: Vec<Vec<String>> = records.iter().map(words).collect();
    let average = all.iter().map(Vec::len).sum::<usize>() as f64 / all.len() as f64;
    let mut scores = vec![0.0; records.len()];
    let mut bound = 0.0;
    for word in terms {
        let counts: Vec<f64> =
            all.iter().map(|words| words.iter().filter(|own| own == word).count() as f64).collect();
        let frequency = counts.iter().filter(|count| **count > 0.0).count() as f64;
        let idf = (1.0 + (all.len() as f64 - frequency + 0.5) / (frequency + 0.5)).ln();
        bound += idf * 2.2;
        for ((score, count), words) in scores.iter_mut().zip(&counts).zip(&all) {
            *score += idf * 2.2 * count / (count + 1.2 * (0.25 + 0.75 * words.len() as f64 / average));
        }
    }
    (scores, bound)
}

/// The score of every record that passes and has one, by id.
fn truth(records: &[KnowledgeRecord], query: &KnowledgeQuery, by_meaning: bool) -> BTreeMap<String, f64> {
    let terms: BTreeSet<&str> = query.query.split(' ').collect();
    let (scores, bound) = bm25(records, &terms);
    let passing: Vec<usize> = (0..records.len())
        .filter(|at| query.filters.tags.iter().all(|tag| records[*at].tags.contains(tag)))
        .filter(|at| query.filters.kind.is_none_or(|kind| kind == records[*at].kind))
        .collect();
    let best = passing.iter().map(|at| scores[*at]).fold(0.0, f64::max);
    let question = vector(&query.query);
    let score = |at: &usize| {
        let record = &records[*at];
        let words = if best > 0.0 { (scores[*at] / (best * bound).sqrt()).min(1.0) } else { 0.0 };
        if !by_meaning {
            return words;
        }
        let passage = quantised(&format!("{}\n{}", record.title, record.text));
        let cosine: f64 = passage.iter().zip(&question).map(|(a, b)| a * f64::from(*b)).sum();
        0.5 * words + 0.5 * cosine.clamp(0.0, 1.0)
    };
    let scored = passing.iter().map(|at| (records[*at].id.clone(), score(at)));
    scored.filter(|(_, score)| *score > 0.0).collect()
}

/// The same records as in the truth, best first; where the truth puts two at the same place, either will do.
fn assert_true(records: &[KnowledgeRecord], base: &KnowledgeBase, query: &KnowledgeQuery, by_meaning: bool) {
    let found = search(base, query.clone());
    let mut truth = truth(records, query, by_meaning);
    assert_eq!(found.results.len(), truth.len().min(query.top_k), "{query:?}");
    let mut last = f64::INFINITY;
    for hit in &found.results {
        let score = truth.remove(&hit.record.id).unwrap_or_else(|| panic!("{} does not pass", hit.record.id));
        assert!((hit.score - score).abs() < ROUNDING, "{}: {} and not {score}", hit.record.id, hit.score);
        assert!(score <= last + ROUNDING, "{} stands too low", hit.record.id);
        last = score;
    }
    let missed = truth.values().copied().fold(0.0, f64::max);
    assert!(found.results.is_empty() || missed <= last + ROUNDING, "{missed} was left out for {last}");
}

fn records(count: usize, seed: u64) -> Vec<KnowledgeRecord> {
    let mut state = seed | 1;
    let mut next = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let one = |at: usize| {
        let mut words =
            |count: usize| (0..count).map(|_| WORDS[next(WORDS.len())]).collect::<Vec<_>>().join(" ");
        let (title, text) = (words(2), words(3 + at % 11));
        let mut record = record(&format!("doc:{at:05}"), &title, &text);
        let shares = [("halb", 2), ("hundertst", 100), ("zehntausendst", 10_000)];
        record.tags =
            shares.iter().filter(|(_, of)| at % of == 1).map(|(tag, _)| (*tag).to_owned()).collect();
        record
    };
    (0..count).map(one).collect()
}

fn bases(records: &[KnowledgeRecord]) -> [(KnowledgeBase, bool); 2] {
    let build = |embedder| {
        KnowledgeBase::build(records.to_vec(), embedder, None, ScoreThresholds::NONE, &mut |_| {}).unwrap()
    };
    [(build(None), false), (build(Some(Hashes::embedder())), true)]
}

fn tagged(question: &str, tag: Option<&str>, top_k: usize) -> KnowledgeQuery {
    let tags = tag.iter().map(|tag| (*tag).to_owned()).collect();
    KnowledgeQuery { filters: RecordFilters { tags, ..RecordFilters::default() }, ..ask(question, top_k) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn small_bases_answer_as_exact_scoring_does(
        seed in any::<u64>(),
        count in 1_usize..300,
        words in proptest::collection::btree_set(0_usize..WORDS.len(), 1..5),
        tag in prop_oneof![Just(None), Just(Some("halb")), Just(Some("hundertst")), Just(Some("nirgends"))],
        top_k in 1_usize..30,
    ) {
        let records = records(count, seed);
        let question: Vec<_> = words.into_iter().map(|at| WORDS[at]).collect();
        for (base, by_meaning) in bases(&records) {
            assert_true(&records, &base, &tagged(&question.join(" "), tag, top_k), by_meaning);
        }
    }
}

/// Half, a hundredth, one in ten thousand and none of twenty thousand records.
#[test]
fn large_bases_answer_as_exact_scoring_does() {
    let records = records(20_000, 11);
    for (base, by_meaning) in bases(&records) {
        for question in ["ice ship", "map food dog wind pole"] {
            for tag in [None, Some("halb"), Some("hundertst"), Some("zehntausendst"), Some("nirgends")] {
                assert_true(&records, &base, &tagged(question, tag, 10), by_meaning);
            }
        }
    }
}
