//! The words of every record, and which records pass a filter. Built whole, never changed: whoever searches holds a
//! finished one.

mod bits;
mod build;
mod filter;
mod query;
mod typos;

use std::collections::HashMap;

use foldhash::fast::FixedState;
use quarterdeck_contracts::KnowledgeRecord;

pub(crate) use bits::Bits;
pub(crate) use filter::{BadFilter, FilterIndex};
pub(crate) use query::Query;
use typos::Vocabulary;

/// BM25's saturation of repeated words.
pub(crate) const K1: f32 = 1.2;
/// BM25's share of the length of a record.
const B: f32 = 0.75;

/// A filter that keeps so much less than a word has is looked up in the word's records, not the other way round.
const SELECTIVE: usize = 16;

/// The number of a record: records are sorted by id, so that equal scores stand in the order of ids.
pub(crate) type Doc = u32;
/// The number of a stem.
pub(crate) type Term = u32;

/// An inverted index with finished BM25 weights.
pub(crate) struct Index {
    records: Vec<KnowledgeRecord>,
    /// Every folded word that occurs, with its stem.
    words: HashMap<Box<str>, Term, FixedState>,
    stems: HashMap<Box<str>, Term, FixedState>,
    /// Where the postings of each stem begin; one more than there are stems.
    starts: Vec<usize>,
    docs: Vec<Doc>,
    impacts: Vec<f32>,
    pub(crate) filters: FilterIndex,
    vocabulary: Vocabulary,
}

impl Index {
    /// The records, sorted by id.
    pub(crate) fn records(&self) -> &[KnowledgeRecord] {
        &self.records
    }

    /// The stem of a folded word that occurs in some record.
    pub(crate) fn term(&self, folded: &str) -> Option<Term> {
        self.words.get(folded).copied()
    }

    /// How many stems there are.
    pub(crate) fn terms(&self) -> usize {
        self.stems.len()
    }

    /// In how many records a stem occurs.
    pub(crate) fn frequency(&self, term: Term) -> usize {
        self.postings(term).len()
    }

    /// BM25's inverse document frequency for a word in so many records.
    pub(crate) fn idf(&self, frequency: usize) -> f32 {
        idf(self.records.len(), frequency)
    }

    /// BM25 of every record that passes the filter and contains a word of the query, in the order of records.
    pub(crate) fn score(&self, query: &Query, filter: &Bits) -> Vec<(Doc, f32)> {
        let mut scores = vec![0_f32; self.records.len()];
        for (term, weight) in query.weights() {
            let range = self.postings(term);
            let (docs, impacts) = (&self.docs[range.clone()], &self.impacts[range]);
            let mut add = |doc: Doc, impact: f32| scores[doc as usize] += weight * impact;
            if filter.count() == self.records.len() {
                docs.iter().zip(impacts).for_each(|(&doc, &impact)| add(doc, impact));
            } else if filter.count() < docs.len() / SELECTIVE {
                look_up(docs, filter.iter(), |at| add(docs[at], impacts[at]));
            } else {
                let both = docs.iter().zip(impacts).filter(|(doc, _)| filter.has(**doc));
                both.for_each(|(&doc, &impact)| add(doc, impact));
            }
        }
        let scored = scores.into_iter().enumerate().filter(|(_, score)| *score > 0.0);
        scored.map(|(doc, score)| (doc as Doc, score)).collect()
    }

    fn postings(&self, term: Term) -> std::ops::Range<usize> {
        self.starts[term as usize]..self.starts[term as usize + 1]
    }
}

/// The places in `docs` of those that are wanted; both are sorted.
fn look_up(docs: &[Doc], wanted: impl Iterator<Item = Doc>, mut each: impl FnMut(usize)) {
    let mut from = 0;
    for doc in wanted {
        match docs[from..].binary_search(&doc) {
            Ok(at) => {
                each(from + at);
                from += at + 1;
            }
            Err(at) => from += at,
        }
    }
}

fn idf(records: usize, frequency: usize) -> f32 {
    let (records, frequency) = (records as f32, frequency as f32);
    (1.0 + (records - frequency + 0.5) / (frequency + 0.5)).ln()
}

#[cfg(test)]
mod tests {
    use quarterdeck_contracts::Namespace;

    use super::*;

    fn index(records: &[(&str, &str, &str)]) -> Index {
        let record = |(id, title, text): &(&str, &str, &str)| {
            let record = serde_json::json!({
                "id": id, "type": "doc", "namespace": "studio", "title": title, "text": text,
            });
            serde_json::from_value(record).unwrap()
        };
        Index::new(records.iter().map(record).collect())
    }

    fn scores(index: &Index, question: &str) -> Vec<(Doc, f32)> {
        index.score(&Query::new(index, question), &index.filters.namespace(Namespace::Studio))
    }

    #[test]
    fn scores_are_what_the_formula_says() {
        let index = index(&[
            ("doc:a", "Ice", "The ice and the ships"),
            ("doc:b", "Dogs", "Ship, ship, ship"),
            ("doc:c", "Maps", "Nothing else here"),
        ]);
        // Lengths without stop words, the title twice: 4, 5 and 5.
        let average = 14.0 / 3.0;
        let weight = |frequency: f32, count: f32, length: f32| {
            let idf = (1.0 + (3.0 - frequency + 0.5) / (frequency + 0.5)).ln();
            idf * 2.2 * count / (count + 1.2 * (0.25 + 0.75 * length / average))
        };
        let expected = [(0, weight(1.0, 3.0, 4.0) + weight(2.0, 1.0, 4.0)), (1, weight(2.0, 3.0, 5.0))];
        for ((doc, score), (expected_doc, expected)) in
            scores(&index, "ICE ships, ship").into_iter().zip(expected)
        {
            assert_eq!(doc, expected_doc);
            assert!((score - expected).abs() < 1e-5, "{score} {expected}");
        }
    }

    #[test]
    fn the_order_of_words_does_not_matter_and_the_first_of_two_ids_is_kept() {
        let index =
            index(&[("doc:a", "Otto Sverdrup", ""), ("doc:a", "Other", ""), ("doc:b", "Otto", "Sverdrup")]);
        assert_eq!(index.records().len(), 2);
        assert_eq!(scores(&index, "Otto Sverdrup"), scores(&index, "sverdrup, otto"));
    }

    #[test]
    fn looking_up_finds_what_both_have() {
        let mut found = Vec::new();
        look_up(&[1, 4, 5, 9, 12], [0, 4, 6, 9, 13].into_iter(), |at| found.push(at));
        assert_eq!(found, [1, 3]);
    }
}
