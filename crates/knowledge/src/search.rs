//! One question from words to ranked evidence.

use quarterdeck_contracts::{EmptyReason, KnowledgeQuery, RecordFilters, SearchResult, SearchResults};

use crate::index::{BitSet, Doc, FilterError, Index, K1, Query};
use crate::snippet::{Highlights, highlight};
use crate::top_k::TopK;
use crate::vectors::Vectors;

/// Records that are scored again with the unrounded question.
const MIN_RESCORED: usize = 200;
const MAX_RESULTS: usize = 1_000;

/// When a question counts as answered. The best record decides whether there is an answer at all; the others must reach
/// a share of the threshold.
///
/// The defaults were set on the questions of the sample base, those with words and meaning on all-MiniLM-L6-v2. A model
/// whose cosines lie elsewhere wants its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoreThresholds {
    /// What the best score must reach when only words are compared.
    pub lexical: f64,
    /// Enough in itself when only words are compared: so many rare words of the question, in a record that says little
    /// else. Long questions are never covered whole, and need not be.
    pub evidence: f64,
    /// What the best score must reach when words and meaning are compared.
    pub hybrid: f64,
    /// Enough in itself then: the cosine of the nearest record, which may share no word with the question.
    pub semantic: f64,
}

impl ScoreThresholds {
    /// Everything that has a word of the question or any likeness to it.
    pub const NONE: Self = Self { lexical: 0.0, evidence: 0.0, hybrid: 0.0, semantic: 0.0 };
    /// What the other records must reach, as a share of the threshold.
    const REST_SHARE: f64 = 0.2;
}

impl Default for ScoreThresholds {
    fn default() -> Self {
        Self { lexical: 0.45, evidence: 0.9, hybrid: 0.4, semantic: 0.55 }
    }
}

/// The vectors of the base, and the question's own.
#[derive(Clone, Copy)]
pub(crate) struct SemanticQuery<'a> {
    pub(crate) vectors: &'a Vectors,
    pub(crate) question: &'a [f32],
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Hit {
    doc: Doc,
    score: f64,
    /// Zero in a search by words.
    cosine: f64,
    /// The passage with this cosine.
    passage: Option<usize>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SearchError {
    #[error(transparent)]
    Filter(#[from] FilterError),
    #[error("the record `{0}` cannot be read")]
    Record(String),
}

/// Answers a question; the caller has checked who asks and adds how long it took.
pub(crate) fn search(
    index: &Index,
    semantic: Option<SemanticQuery<'_>>,
    thresholds: ScoreThresholds,
    request: &KnowledgeQuery,
) -> Result<SearchResults, SearchError> {
    let passing = index.filters.select(request.namespace, &request.filters)?;
    let query = Query::new(index, &request.query);
    let limit = request.top_k.min(MAX_RESULTS);
    let (hits, matching) = rank(index, semantic, thresholds, &query, &passing, limit);
    let mut found = SearchResults { degraded: semantic.is_none(), ..SearchResults::default() };
    if matching == 0 {
        let without = match request.filters == RecordFilters::default() {
            true => 0,
            false => {
                rank(index, semantic, thresholds, &query, &index.filters.namespace(request.namespace), 0).1
            }
        };
        found.empty = Some(if without > 0 { EmptyReason::Filtered } else { EmptyReason::None });
        found.without_filters = (without > 0).then_some(without);
    }
    let snippet_length = request.include_snippets.then_some(request.snippet_length);
    for hit in hits {
        let read = index.records.get(hit.doc);
        let record = read.map_err(|_| SearchError::Record(index.records.id(hit.doc).to_owned()))?;
        let Highlights { snippet, matched } = highlight(index, &query, &record, hit.passage, snippet_length);
        found.results.push(SearchResult { record, score: hit.score, snippet, matched });
    }
    Ok(found)
}

/// The best candidates, the best first and ties by id, and how many there are; none when the best does not reach its
/// threshold.
fn rank(
    index: &Index,
    semantic: Option<SemanticQuery<'_>>,
    thresholds: ScoreThresholds,
    query: &Query,
    passing: &BitSet,
    limit: usize,
) -> (Vec<Hit>, usize) {
    if query.is_empty() {
        return (Vec::new(), 0);
    }
    let lexical = LexicalScores::new(index, query, passing);
    match semantic {
        None if lexical.is_answer(thresholds) => {
            lexical.hits(thresholds.lexical * ScoreThresholds::REST_SHARE, limit)
        }
        None => (Vec::new(), 0),
        Some(semantic) => {
            let hits = fuse(&lexical, semantic, passing, limit);
            let best = hits.iter().map(|hit| hit.score).fold(0.0, f64::max);
            let nearest = hits.iter().map(|hit| hit.cosine).fold(0.0, f64::max);
            if best >= thresholds.hybrid || nearest >= thresholds.semantic {
                best_hits(hits, thresholds.hybrid * ScoreThresholds::REST_SHARE, limit)
            } else {
                (Vec::new(), 0)
            }
        }
    }
}

fn best_hits(mut hits: Vec<Hit>, min_score: f64, limit: usize) -> (Vec<Hit>, usize) {
    hits.retain(|hit| hit.score > 0.0 && hit.score >= min_score);
    let matching = hits.len();
    hits.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.doc.cmp(&b.doc)));
    hits.truncate(limit);
    (hits, matching)
}

/// BM25, scaled by the geometric mean of the best score and the highest that the words could reach: scaled by the best
/// alone, every question would have a perfect answer.
struct LexicalScores {
    /// By record.
    scores: Vec<f32>,
    best: f32,
    scale: f64,
    /// The best BM25, in units of a perfect match of a word that stands nowhere else.
    evidence: f64,
}

impl LexicalScores {
    fn new(index: &Index, query: &Query, passing: &BitSet) -> Self {
        let scores = index.score(query, passing);
        let best = scores.iter().copied().fold(0.0, f32::max);
        let evidence = f64::from(best) / f64::from(index.idf(1) * (K1 + 1.0));
        let scale = (f64::from(best) * f64::from(query.bound())).sqrt();
        Self { scores, best, scale, evidence }
    }

    /// Whether the best record answers the question, as far as words can tell.
    fn is_answer(&self, thresholds: ScoreThresholds) -> bool {
        self.scaled(self.best) >= thresholds.lexical || self.evidence >= thresholds.evidence
    }

    /// The best records that reach `min_score`, and how many do.
    fn hits(&self, min_score: f64, limit: usize) -> (Vec<Hit>, usize) {
        let (mut best, mut matching) = (TopK::new(limit), 0);
        for (&score, doc) in self.scores.iter().zip(0..) {
            if score > 0.0 {
                let scaled = self.scaled(score);
                if scaled >= min_score {
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

/// Half words, half meaning, for every record that passes: neither half picks candidates for the other, so none are
/// lost.
fn fuse(lexical: &LexicalScores, semantic: SemanticQuery<'_>, passing: &BitSet, limit: usize) -> Vec<Hit> {
    let fused = |doc, cosine: f64| 0.5 * lexical.of(doc) + 0.5 * cosine.clamp(0.0, 1.0);
    let SemanticQuery { vectors, question } = semantic;
    let hit = |doc| {
        let near = vectors.score(doc, question);
        let cosine = near.map_or(0.0, |(cosine, _)| f64::from(cosine).clamp(0.0, 1.0));
        Hit { doc, score: fused(doc, cosine), cosine, passage: near.map(|(_, passage)| passage) }
    };
    vectors.best(question, passing, MIN_RESCORED.max(2 * limit), fused).into_iter().map(hit).collect()
}
