//! One question from words to ranked evidence.

use quarterdeck_contracts::{EmptyReason, KnowledgeQuery, RecordFilters, SearchResult, SearchResults};

use crate::best::Best;
use crate::index::{BadFilter, Bits, Doc, Index, K1, Query};
use crate::snippet::quote;
use crate::vectors::Vectors;

/// How many records are scored again with all digits of the question, at the least.
const RESCORED: usize = 200;
/// How many results a question gets at the most.
const MOST_RESULTS: usize = 1_000;

/// When a question counts as answered. The best record decides whether there is an answer at all; the others must not
/// fall too far behind the floor.
///
/// The defaults were set on the questions of the sample base, those with words and meaning on all-MiniLM-L6-v2. A model
/// whose cosines lie elsewhere wants its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoreThresholds {
    /// What the best score must reach when only words are compared.
    pub words: f64,
    /// Enough in itself when only words are compared: so many rare words of the question, in a record that says little
    /// else. Long questions are never covered whole, and need not be.
    pub evidence: f64,
    /// What the best score must reach when words and meaning are compared.
    pub both: f64,
    /// Enough in itself then: the cosine of the nearest record, which may share no word with the question.
    pub meaning: f64,
}

impl ScoreThresholds {
    /// Everything that has a word of the question or any likeness to it.
    pub const NONE: Self = Self { words: 0.0, evidence: 0.0, both: 0.0, meaning: 0.0 };
    /// What the others must reach, as a share of the floor.
    const REST: f64 = 0.2;
}

impl Default for ScoreThresholds {
    fn default() -> Self {
        Self { words: 0.45, evidence: 0.9, both: 0.4, meaning: 0.55 }
    }
}

/// The meaning of a question: vectors of the base, and the question's own.
#[derive(Clone, Copy)]
pub(crate) struct Meaning<'a> {
    pub(crate) vectors: &'a Vectors,
    pub(crate) question: &'a [f32],
}

/// A record that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Hit {
    doc: Doc,
    score: f64,
    /// How near it is in meaning, if that was asked.
    cosine: f64,
    /// Its passage that is nearest in meaning.
    passage: Option<usize>,
}

/// Why a question cannot be answered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SearchError {
    #[error(transparent)]
    Filter(#[from] BadFilter),
    #[error("the record `{0}` cannot be read")]
    Record(String),
}

/// Answers a question; the caller has checked who asks and adds how long it took.
pub(crate) fn search(
    index: &Index,
    meaning: Option<Meaning<'_>>,
    floor: ScoreThresholds,
    asked: &KnowledgeQuery,
) -> Result<SearchResults, SearchError> {
    let passing = index.filters.passing(asked.namespace, &asked.filters)?;
    let query = Query::new(index, &asked.query);
    let most = asked.top_k.min(MOST_RESULTS);
    let (hits, matching) = rank(index, meaning, floor, &query, &passing, most);
    let mut found = SearchResults { degraded: meaning.is_none(), ..SearchResults::default() };
    if matching == 0 {
        let without = match asked.filters == RecordFilters::default() {
            true => 0,
            false => rank(index, meaning, floor, &query, &index.filters.namespace(asked.namespace), 0).1,
        };
        found.empty = Some(if without > 0 { EmptyReason::Filtered } else { EmptyReason::None });
        found.without_filters = (without > 0).then_some(without);
    }
    let limit = asked.include_snippets.then_some(asked.snippet_length);
    for hit in hits {
        let read = index.records.get(hit.doc);
        let record = read.map_err(|_| SearchError::Record(index.records.id(hit.doc).to_owned()))?;
        let quotation = quote(index, &query, &record, hit.passage, limit);
        let (snippet, matched) = (quotation.snippet, quotation.matched);
        found.results.push(SearchResult { record, score: hit.score, snippet, matched });
    }
    Ok(found)
}

/// The best candidates, the best first and ties by id, and how many there are; none when the best does not reach the
/// floor.
fn rank(
    index: &Index,
    meaning: Option<Meaning<'_>>,
    floor: ScoreThresholds,
    query: &Query,
    passing: &Bits,
    most: usize,
) -> (Vec<Hit>, usize) {
    if query.is_empty() {
        return (Vec::new(), 0);
    }
    let words = Words::new(index, query, passing);
    match meaning {
        None if words.is_answer(floor) => words.hits(floor.words * ScoreThresholds::REST, most),
        None => (Vec::new(), 0),
        Some(meaning) => {
            let hits = fuse(&words, meaning, passing, most);
            let best = hits.iter().map(|hit| hit.score).fold(0.0, f64::max);
            let nearest = hits.iter().map(|hit| hit.cosine).fold(0.0, f64::max);
            if best >= floor.both || nearest >= floor.meaning {
                best_hits(hits, floor.both * ScoreThresholds::REST, most)
            } else {
                (Vec::new(), 0)
            }
        }
    }
}

fn best_hits(mut hits: Vec<Hit>, least: f64, most: usize) -> (Vec<Hit>, usize) {
    hits.retain(|hit| hit.score > 0.0 && hit.score >= least);
    let matching = hits.len();
    hits.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.doc.cmp(&b.doc)));
    hits.truncate(most);
    (hits, matching)
}

/// The lexical leg: BM25 on a scale on which a hopeless question cannot look perfect. The best record alone would be
/// its own measure; what the words could reach at the most is the other half of it.
struct Words {
    /// By record.
    scores: Vec<f32>,
    best: f32,
    scale: f64,
    /// The best BM25, in units of a perfect match of a word that stands nowhere else.
    evidence: f64,
}

impl Words {
    fn new(index: &Index, query: &Query, passing: &Bits) -> Self {
        let scores = index.score(query, passing);
        let best = scores.iter().copied().fold(0.0, f32::max);
        let evidence = f64::from(best) / f64::from(index.idf(1) * (K1 + 1.0));
        let scale = (f64::from(best) * f64::from(query.bound())).sqrt();
        Self { scores, best, scale, evidence }
    }

    /// Whether the best record answers the question, as far as words can tell.
    fn is_answer(&self, floor: ScoreThresholds) -> bool {
        self.scaled(self.best) >= floor.words || self.evidence >= floor.evidence
    }

    /// The best records that reach `least`, and how many do.
    fn hits(&self, least: f64, most: usize) -> (Vec<Hit>, usize) {
        let (mut best, mut matching) = (Best::new(most), 0);
        for (&score, doc) in self.scores.iter().zip(0..) {
            if score > 0.0 {
                let scaled = self.scaled(score);
                if scaled >= least {
                    matching += 1;
                    best.offer(scaled, doc);
                }
            }
        }
        let hit = |(score, doc)| Hit { doc, score, cosine: 0.0, passage: None };
        (best.finish().into_iter().map(hit).collect(), matching)
    }

    fn of(&self, doc: Doc) -> f64 {
        self.scaled(self.scores[doc as usize])
    }

    fn scaled(&self, score: f32) -> f64 {
        if self.scale > 0.0 { (f64::from(score) / self.scale).clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// Half words, half meaning, for every record that passes: neither leg picks candidates for the other, so nothing can be
/// lost between them.
fn fuse(words: &Words, meaning: Meaning<'_>, passing: &Bits, most: usize) -> Vec<Hit> {
    let fused = |doc, cosine: f64| 0.5 * words.of(doc) + 0.5 * cosine.clamp(0.0, 1.0);
    let Meaning { vectors, question } = meaning;
    let hit = |doc| {
        let near = vectors.score(doc, question);
        let cosine = near.map_or(0.0, |(cosine, _)| f64::from(cosine).clamp(0.0, 1.0));
        Hit { doc, score: fused(doc, cosine), cosine, passage: near.map(|(_, passage)| passage) }
    };
    vectors.best(question, passing, RESCORED.max(2 * most), fused).into_iter().map(hit).collect()
}
