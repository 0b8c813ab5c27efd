//! The words of every record, and which records pass a filter. Built whole and never changed, so that a search holds
//! one finished index.

mod bit_set;
mod build;
mod edit_distance;
mod filter;
mod parts;
mod postings;
mod query;
mod records;
mod strings;
mod typos;

pub(crate) use bit_set::BitSet;
pub(crate) use edit_distance::edit_distance;
pub(crate) use filter::{FilterError, FilterIndex};
pub(crate) use parts::Parts;
pub(crate) use query::Query;
pub(crate) use records::Records;

use postings::Postings;
use strings::Lexicon;
use typos::Vocabulary;

/// BM25's saturation of repeated words.
pub(crate) const K1: f32 = 1.2;
/// BM25's share of the length of a record.
const B: f32 = 0.75;

/// The number of a record: records are sorted by id, so that equal scores stand in the order of ids.
pub(crate) type Doc = u32;
/// The number of a stem.
pub(crate) type Term = u32;

pub(crate) struct Index {
    pub(crate) records: Records,
    pub(crate) filters: FilterIndex,
    /// Every folded word that occurs.
    words: Lexicon,
    /// By word: its stem.
    terms: Vec<Term>,
    stems: Lexicon,
    postings: Postings,
    vocabulary: Vocabulary,
}

impl Index {
    fn assemble(
        records: Records,
        filters: FilterIndex,
        words: Lexicon,
        terms: Vec<Term>,
        stems: Lexicon,
        postings: Postings,
    ) -> Self {
        let vocabulary = Vocabulary::new(words.strings());
        Self { records, filters, words, terms, stems, postings, vocabulary }
    }

    /// The stem of a folded word that occurs in some record.
    pub(crate) fn term(&self, folded: &str) -> Option<Term> {
        self.words.find(folded).map(|word| self.terms[word as usize])
    }

    pub(crate) fn terms(&self) -> usize {
        self.stems.strings().len()
    }

    pub(crate) fn frequency(&self, term: Term) -> usize {
        self.postings.frequency(term)
    }

    /// BM25's inverse document frequency for a word in so many records.
    pub(crate) fn idf(&self, frequency: usize) -> f32 {
        let (records, frequency) = (self.records.len() as f32, frequency as f32);
        (1.0 + (records - frequency + 0.5) / (frequency + 0.5)).ln()
    }

    /// BM25 of every record; zero where it does not pass the filter or has no word of the query.
    pub(crate) fn score(&self, query: &Query, filter: &BitSet) -> Vec<f32> {
        let mut scores = vec![0_f32; self.records.len()];
        for (term, weight) in query.weights() {
            let weight = weight * self.idf(self.frequency(term)) * (K1 + 1.0);
            self.postings.add(&mut scores, term, weight, filter);
        }
        scores
    }
}

#[cfg(test)]
mod tests {
    use quarterdeck_contracts::Namespace;

    use super::*;

    pub(super) fn index(records: &[(&str, &str, &str)]) -> Index {
        let record = |(id, title, text): &(&str, &str, &str)| {
            let record = serde_json::json!({
                "id": id, "type": "doc", "namespace": "studio", "title": title, "text": text,
            });
            serde_json::from_value(record).unwrap()
        };
        Index::new(records.iter().map(record).collect())
    }

    fn scores(index: &Index, question: &str) -> Vec<f32> {
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
        let expected = [weight(1.0, 3.0, 4.0) + weight(2.0, 1.0, 4.0), weight(2.0, 3.0, 5.0), 0.0];
        for (score, expected) in scores(&index, "ICE ships, ship").into_iter().zip(expected) {
            assert!((score - expected).abs() < 1e-5, "{score} {expected}");
        }
    }

    #[test]
    fn the_order_of_words_does_not_matter_and_the_first_of_two_ids_is_kept() {
        let index =
            index(&[("doc:a", "Otto Sverdrup", ""), ("doc:a", "Other", ""), ("doc:b", "Otto", "Sverdrup")]);
        assert_eq!(index.records.len(), 2);
        assert_eq!(index.records.find("doc:b"), Some(1));
        assert_eq!(index.records.get(0).unwrap().title, "Otto Sverdrup");
        assert_eq!(scores(&index, "Otto Sverdrup"), scores(&index, "sverdrup, otto"));
    }
}
