//! A question as the index understands it.

use super::{Index, K1, Term};
use crate::text::{Stems, is_stop_word, words};

const MAX_QUERY_CHARS: usize = 10_000;
/// Unknown words that are looked up by their spelling.
const MAX_CORRECTED_WORDS: usize = 8;
/// What a corrected word counts, by its edit distance.
const CORRECTION_WEIGHTS: [f32; 3] = [1.0, 0.8, 0.6];

/// The words of a question, without repetitions and sorted, so that their order does not matter.
pub(crate) struct Query {
    terms: Vec<QueryTerm>,
    bound: f32,
}

/// One word of a question.
struct QueryTerm {
    /// The stem that it stands for.
    term: Term,
    /// What a match is worth: 1, or less for a correction.
    weight: f32,
}

impl Query {
    /// Reads a question. Stop words are dropped, unless there is nothing else.
    pub(crate) fn new(index: &Index, question: &str) -> Self {
        let end = question.char_indices().nth(MAX_QUERY_CHARS).map_or(question.len(), |(at, _)| at);
        let mut asked = words(&question[..end]);
        asked.sort_unstable();
        asked.dedup();
        if asked.iter().any(|word| !is_stop_word(word)) {
            asked.retain(|word| !is_stop_word(word));
        }
        Self::of_words(index, &asked)
    }

    fn of_words(index: &Index, asked: &[String]) -> Self {
        let stems = Stems::new();
        let mut query = Self { terms: Vec::new(), bound: 0.0 };
        let mut unknown: Vec<(&str, String)> = Vec::new();
        for word in asked {
            let stem = stems.stem(word);
            match index.stems.find(&stem) {
                Some(term) if query.has(term) => {}
                Some(term) => query.add(index, &[(term, 1.0)]),
                None if unknown.iter().any(|(_, other)| *other == stem) => {}
                None => unknown.push((word, stem)),
            }
        }
        for (at, (word, _)) in unknown.iter().enumerate() {
            let corrections =
                if at < MAX_CORRECTED_WORDS { query.corrections(index, word) } else { Vec::new() };
            query.add(index, &corrections);
        }
        query.terms.sort_unstable_by_key(|term| term.term);
        query
    }

    /// What a misspelt word may mean, but for what is asked anyway.
    fn corrections(&self, index: &Index, word: &str) -> Vec<(Term, f32)> {
        let term_of = |near: u32| index.terms[near as usize];
        let frequency = |near: u32| index.frequency(term_of(near));
        let mut corrections: Vec<(Term, f32)> = Vec::new();
        for (near, edits) in index.vocabulary.nearest(index.words.strings(), word, frequency) {
            let term = term_of(near);
            if !self.has(term) && corrections.iter().all(|(other, _)| *other != term) {
                corrections.push((term, CORRECTION_WEIGHTS[edits.min(2)]));
            }
        }
        corrections
    }

    /// Adds what one word stands for. A word that nothing matches counts in full as missing.
    fn add(&mut self, index: &Index, meanings: &[(Term, f32)]) {
        let highest = meanings.iter().map(|(term, _)| index.idf(index.frequency(*term))).reduce(f32::max);
        self.bound += highest.unwrap_or_else(|| index.idf(0)) * (K1 + 1.0);
        self.terms.extend(meanings.iter().map(|&(term, weight)| QueryTerm { term, weight }));
    }

    fn has(&self, term: Term) -> bool {
        self.terms.iter().any(|other| other.term == term)
    }

    /// Stems with what a match is worth.
    pub(crate) fn weights(&self) -> impl Iterator<Item = (Term, f32)> + '_ {
        self.terms.iter().map(|term| (term.term, term.weight))
    }

    /// What BM25 cannot exceed for these words.
    pub(crate) fn bound(&self) -> f32 {
        self.bound
    }

    /// Whether the question has no words at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.bound == 0.0
    }
}
