//! How long does a search take? Synthetic records with words as frequent as in real text, searched one after the other:
//! `cargo run --release -p quarterdeck-knowledge --example latency -- 100000`.
#![expect(clippy::print_stdout, reason = "its output is what it is for")]
#![expect(clippy::unwrap_used, reason = "a measurement that fails says so by ending")]

use std::time::Instant;

use quarterdeck_contracts::{
    EmbedError, Embedder, EmbeddingModel, Knowledge, KnowledgeQuery, KnowledgeRecord,
};
use quarterdeck_knowledge::KnowledgeBase;
use serde_json::json;

struct Dice(u64);

impl Dice {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A word, the more common the smaller its number: Zipf's law over a hundred thousand. The eighty most common stand
    /// for stop words, which questions do not have.
    fn word(&mut self, from: f64) -> String {
        let mut number = (from * (100_000.0 / from).powf(self.next())) as usize;
        let mut word = "q".to_owned();
        while number > 0 {
            word.push_str(["ka", "lo", "mi", "ne", "ru", "sa", "ti", "vo", "pe", "du"][number % 10]);
            number /= 10;
        }
        word
    }

    fn words(&mut self, count: usize, from: f64) -> String {
        (0..count).map(|_| self.word(from)).collect::<Vec<_>>().join(" ")
    }
}

/// Vectors without meaning, of the usual length.
struct Noise(EmbeddingModel);

impl Embedder for Noise {
    fn model(&self) -> &EmbeddingModel {
        &self.0
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let seed =
            |text: &str| text.bytes().fold(1, |seed: u64, byte| seed.wrapping_mul(31) + u64::from(byte));
        let embed = |text: &&str| {
            let mut dice = Dice(seed(text));
            (0..384).map(|_| dice.next() as f32 - 0.5).collect()
        };
        Ok(texts.iter().map(embed).collect())
    }
}

fn main() {
    let count: usize = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(10_000);
    let mut dice = Dice(42);
    let records: Vec<KnowledgeRecord> = (0..count)
        .map(|at| {
            let tags = if at % 100 == 0 { json!(["rare"]) } else { json!([]) };
            serde_json::from_value(json!({
                "id": format!("doc:{at:06}"), "type": "doc", "namespace": "studio", "title": dice.words(6, 1.0),
                "text": dice.words(200, 1.0), "tags": tags,
            }))
            .unwrap()
        })
        .collect();
    let started = Instant::now();
    let words = KnowledgeBase::from_records(records.clone(), None, None).unwrap();
    println!("{count} records, {} stems, index built in {:?}", words.stats().terms, started.elapsed());
    let model = EmbeddingModel { name: "noise".into(), dimension: 384, digest: "0".into() };
    let both = KnowledgeBase::from_records(records, Some(std::sync::Arc::new(Noise(model))), None).unwrap();
    for (name, base) in [("words", &words), ("words and meaning", &both)] {
        for tags in [json!([]), json!(["rare"])] {
            for snippets in [false, true] {
                let mut times: Vec<f64> = (0..500)
                    .map(|_| {
                        let query: KnowledgeQuery = serde_json::from_value(json!({
                            "query": dice.words(5, 80.0), "filters": { "tags": tags }, "includeSnippets": snippets,
                        }))
                        .unwrap();
                        let started = Instant::now();
                        let _ = quarterdeck_testkit::block_on(base.search(query)).unwrap();
                        started.elapsed().as_secs_f64() * 1e3
                    })
                    .collect();
                times.sort_by(f64::total_cmp);
                println!(
                    "{name}, tags {tags}, snippets {snippets}: p50 {:.3} ms, p99 {:.3} ms",
                    times[250], times[495]
                );
            }
        }
    }
}
