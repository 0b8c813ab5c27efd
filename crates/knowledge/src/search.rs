//! One question from words to ranked evidence.

use std::sync::Arc;

use quarterdeck_contracts::{EmptyReason, KnowledgeQuery, RecordFilters, SearchResult, SearchResults};

use crate::index::{BitSet, Doc, FilterError, Index, K1, Query};
use crate::snippet::{Highlights, highlight};
use crate::top_k::TopK;
use crate::vectors::VectorStorage;

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
    pub(crate) vectors: &'a VectorStorage,
    pub(crate) question: &'a Arc<[f32]>,
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
pub(crate) async fn search(
    index: &Index,
    semantic: Option<SemanticQuery<'_>>,
    thresholds: ScoreThresholds,
    request: &KnowledgeQuery,
) -> Result<SearchResults, SearchError> {
    let passing = index.filters.select(request.namespace, &request.filters)?;
    let query = Query::new(index, &request.query);
    let limit = request.top_k.min(MAX_RESULTS);
    let asked = Question { index, semantic, thresholds, query: &query };
    let Ranking { hits, matching, is_degraded } = asked.rank(&passing, limit).await;
    let mut found = SearchResults { degraded: is_degraded, ..SearchResults::default() };
    if matching == 0 {
        let without = match request.filters == RecordFilters::default() {
            true => 0,
            false => asked.rank(&index.filters.namespace(request.namespace), 0).await.matching,
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

/// What is asked, and of what.
struct Question<'a> {
    index: &'a Index,
    semantic: Option<SemanticQuery<'a>>,
    thresholds: ScoreThresholds,
    query: &'a Query,
}

/// The best candidates, the best first and ties by id.
struct Ranking {
    hits: Vec<Hit>,
    /// How many there are.
    matching: usize,
    /// Whether only words were compared.
    is_degraded: bool,
}

impl Question<'_> {
    /// The records among those that pass; none when the best does not reach its threshold.
    async fn rank(&self, passing: &BitSet, limit: usize) -> Ranking {
        let Self { index, semantic, thresholds, query } = *self;
        if query.is_empty() {
            return Ranking { hits: Vec::new(), matching: 0, is_degraded: semantic.is_none() };
        }
        let lexical = LexicalScores::new(index, query, passing);
        let fused = match semantic {
            Some(semantic) => fuse(&lexical, semantic, passing, limit).await,
            None => None,
        };
        let is_degraded = fused.is_none();
        let (hits, matching) = match fused {
            None if lexical.is_answer(thresholds) => {
                lexical.hits(thresholds.lexical * ScoreThresholds::REST_SHARE, limit)
            }
            None => (Vec::new(), 0),
            Some(hits) => {
                let best = hits.iter().map(|hit| hit.score).fold(0.0, f64::max);
                let nearest = hits.iter().map(|hit| hit.cosine).fold(0.0, f64::max);
                if best >= thresholds.hybrid || nearest >= thresholds.semantic {
                    best_hits(hits, thresholds.hybrid * ScoreThresholds::REST_SHARE, limit)
                } else {
                    (Vec::new(), 0)
                }
            }
        };
        Ranking { hits, matching, is_degraded }
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

/// Half words, half meaning. In memory that is for every record that passes: neither half picks candidates for the other,
/// so none are lost. Elsewhere it is for the best of each half. `None` when the vectors cannot be asked.
async fn fuse(
    lexical: &LexicalScores,
    semantic: SemanticQuery<'_>,
    passing: &BitSet,
    limit: usize,
) -> Option<Vec<Hit>> {
    let fused = |doc, cosine: f64| 0.5 * lexical.of(doc) + 0.5 * cosine.clamp(0.0, 1.0);
    let hit = |doc, near: Option<(f32, usize)>| {
        let cosine = near.map_or(0.0, |(cosine, _)| f64::from(cosine).clamp(0.0, 1.0));
        Hit { doc, score: fused(doc, cosine), cosine, passage: near.map(|(_, passage)| passage) }
    };
    let SemanticQuery { vectors, question } = semantic;
    match vectors {
        VectorStorage::Memory(vectors) => {
            let best = vectors.best(question, passing, MIN_RESCORED.max(2 * limit), fused);
            Some(best.into_iter().map(|doc| hit(doc, vectors.score(doc, question))).collect())
        }
        VectorStorage::Remote(vectors) => {
            let by_words = lexical.hits(0.0, MIN_RESCORED.max(2 * limit)).0;
            let by_words: Vec<Doc> = by_words.into_iter().map(|hit| hit.doc).collect();
            let near = vectors.near(question, passing, &by_words, limit).await.ok()?;
            Some(near.into_iter().map(|near| hit(near.doc, Some((near.cosine, near.passage)))).collect())
        }
    }
}
