//! The knowledge base with made-up records: words as frequent as in real text, and vectors without meaning.
//!
//! One process builds the base in a file, as `quarterdeck kb build` does; another opens that and searches it, so that
//! its start and its memory are those of a server that found its index unchanged.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use cpu_time::ProcessTime;
use quarterdeck_contracts::{
    EmbedError, Embedder, EmbeddingModel, Knowledge, KnowledgeQuery, KnowledgeRecord, Namespace, Namespaces,
    RecordFilters,
};
use quarterdeck_knowledge::store::{KnowledgeFile, Sources};
use quarterdeck_knowledge::{KnowledgeBase, ScoreThresholds};
use quarterdeck_testkit::block_on;
use serde_json::{Value, json};

use crate::sessions::resident;

/// How many questions are asked of each kind.
const QUESTIONS: usize = 2_000;

/// Builds a base of so many records, and measures it from another process.
pub(crate) fn measure(count: usize) -> Value {
    let folder = std::env::temp_dir().join(format!("quarterdeck-bench-kb-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let path = folder.join("kb.db");
    let records = records(count);
    let text: usize = records.iter().map(|record| record.title.len() + record.text.len()).sum();
    let (wall, cpu) = (Instant::now(), ProcessTime::now());
    let mut file = KnowledgeFile::open(&path).expect("it opens").file;
    file.build(records, Some(Noise::model()), ScoreThresholds::default(), &Sources::default(), &mut |_| {})
        .expect("it is built");
    drop(file);
    let built = json!({ "wall_s": wall.elapsed().as_secs_f64(), "cpu_s": cpu.elapsed().as_secs_f64() });
    let program = std::env::current_exe().expect("this program has a path");
    let output = Command::new(program).arg("knowledge-opened").arg(&path).output().expect("it runs");
    let mut report: Value = serde_json::from_slice(&output.stdout).expect("it prints a report");
    report["records"] = json!(count);
    report["text_mb"] = json!(text as f64 / 1e6);
    report["build_with_made_up_vectors"] = built;
    let resident_mb = report["memory_mb"].as_f64().unwrap_or_default();
    report["memory_beyond_text_mb"] = json!(resident_mb - text as f64 / 1e6);
    let _ = std::fs::remove_dir_all(&folder);
    report
}

/// Opens a base that was built before, and measures start, memory, searches and gets.
pub(crate) fn measure_search(path: &Path) -> Value {
    let before = resident();
    let (wall, cpu) = (Instant::now(), ProcessTime::now());
    let loaded = KnowledgeFile::open(path).and_then(|opened| opened.file.load(ScoreThresholds::default()));
    let base = loaded.expect("it loads").expect("it was built").base;
    let start = json!({ "wall_ms": ms(wall.elapsed()), "cpu_ms": ms(cpu.elapsed()) });
    let words = base.clone();
    let by_words = |rare: bool| percentiles(&words, rare);
    let (words_only, words_filtered) = (by_words(false), by_words(true));
    base.use_model(Noise::model());
    let both = percentiles(&base, false);
    let both_filtered = percentiles(&base, true);
    let records = base.stats().records;
    json!({
        "start": start,
        "words": words_only,
        "words_1_percent": words_filtered,
        "both": both,
        "both_1_percent": both_filtered,
        "get": gets(&base, records),
        "get_unknown": unknown(&base),
        "memory_mb": (resident() - before) as f64 / 1e6,
    })
}

fn percentiles(base: &KnowledgeBase, rare: bool) -> Value {
    let mut rng = Rng(7);
    let tags = if rare { vec!["rare".to_owned()] } else { Vec::new() };
    let records = base.stats().records;
    let questions: Vec<KnowledgeQuery> = (0..QUESTIONS)
        .map(|at| KnowledgeQuery {
            // Two to ten words, as users ask: most of them from a record that is there, one in four from anywhere.
            query: (0..2 + at % 9)
                .map(
                    |word| {
                        if word % 4 == 3 { rng.word(80.0) } else { rng.word_of(base, at * 100 % records) }
                    },
                )
                .collect::<Vec<_>>()
                .join(" "),
            namespace: Namespace::Studio,
            filters: RecordFilters { tags: tags.clone(), ..RecordFilters::default() },
            top_k: 5,
            include_snippets: true,
            snippet_length: 300,
        })
        .collect();
    measure_each(questions, |question| {
        block_on(base.search(question)).expect("it answers");
    })
}

fn gets(base: &KnowledgeBase, records: usize) -> Value {
    let readable = Namespaces::from(Namespace::ALL);
    let ids = (0..QUESTIONS).map(|at| format!("doc:{:06}", at * 7_919 % records)).collect();
    measure_each(ids, |id| {
        block_on(base.get(vec![id], readable.clone())).expect("it is there");
    })
}

/// An id that is not there has its nearest named, for which all of them are looked at.
fn unknown(base: &KnowledgeBase) -> Value {
    let readable = Namespaces::from(Namespace::ALL);
    let ids = (0..QUESTIONS / 20).map(|at| format!("dok:{at:04}x{at}")).collect();
    measure_each(ids, |id| {
        block_on(base.get(vec![id], readable.clone())).expect_err("it is not there");
    })
}

fn measure_each<T>(inputs: Vec<T>, mut each: impl FnMut(T)) -> Value {
    let mut times = Vec::with_capacity(inputs.len());
    let cpu = ProcessTime::now();
    for input in inputs {
        let start = Instant::now();
        each(input);
        times.push(start.elapsed());
    }
    let cpu = ms(cpu.elapsed()) / times.len() as f64;
    times.sort();
    let at = |share: usize| ms(times[times.len() * share / 100]);
    // The first percentile is what a busy machine leaves of an idle one.
    json!({ "p1_ms": at(1), "p50_ms": at(50), "p99_ms": at(99), "cpu_ms": cpu })
}

fn ms(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn records(count: usize) -> Vec<KnowledgeRecord> {
    let mut rng = Rng(42);
    let record = |at: usize| {
        let tags = if at.is_multiple_of(100) { json!(["rare"]) } else { json!([]) };
        let record = json!({
            "id": format!("doc:{at:06}"), "type": "doc", "namespace": "studio", "title": rng.words(6, 1.0),
            "text": rng.words(120, 1.0), "tags": tags,
        });
        serde_json::from_value(record).expect("it is a record")
    };
    (0..count).map(record).collect()
}

struct Rng(u64);

impl Rng {
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

    /// A word of a record, and none of the most common.
    fn word_of(&mut self, base: &KnowledgeBase, record: usize) -> String {
        let got = block_on(base.get(vec![format!("doc:{record:06}")], Namespaces::from(Namespace::ALL)));
        let text = got.expect("it is there").remove(0).text;
        let words: Vec<&str> = text.split(' ').filter(|word| word.len() > 4).collect();
        words[(self.next() * words.len() as f64) as usize].to_owned()
    }

    fn words(&mut self, count: usize, from: f64) -> String {
        (0..count).map(|_| self.word(from)).collect::<Vec<_>>().join(" ")
    }
}

/// Vectors without meaning, of the usual length and about as alike as texts on one subject are. They cost next to
/// nothing, so searches are measured without a model's time.
struct Noise(EmbeddingModel);

impl Noise {
    fn model() -> Arc<dyn Embedder> {
        Arc::new(Self(EmbeddingModel { name: "noise".into(), dimension: 384, digest: "noise".into() }))
    }
}

impl Embedder for Noise {
    fn model(&self) -> &EmbeddingModel {
        &self.0
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let seed = |text: &str| {
            text.bytes().fold(1, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(byte.into()))
        };
        let embed = |text: &&str| {
            let mut rng = Rng(seed(text));
            (0..384).map(|_| rng.next() as f32 - 0.31).collect()
        };
        Ok(texts.iter().map(embed).collect())
    }
}
