//! From records to postings.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use quarterdeck_contracts::KnowledgeRecord;

use super::typos::Vocabulary;
use super::{B, FilterIndex, Index, K1, Term, idf};
use crate::text::{Stems, each_word, is_stop_word, plain};

/// A word of a title counts so often.
const TITLE: f32 = 2.0;

impl Index {
    /// Indexes records by title, tags and text. Of two records with one id the first is kept.
    pub(crate) fn new(mut records: Vec<KnowledgeRecord>) -> Self {
        records.sort_by(|a, b| a.id.cmp(&b.id));
        records.dedup_by(|later, first| later.id == first.id);
        let mut builder = Builder::default();
        for record in &records {
            builder.add(record);
        }
        builder.finish(records)
    }
}

#[derive(Default)]
struct Builder {
    words: HashMap<Box<str>, Term, FixedState>,
    stems: HashMap<Box<str>, Term, FixedState>,
    /// By stem: whether it is what a stop word becomes. Stop words are found, but do not make a record longer.
    is_stop: Vec<bool>,
    frequencies: Vec<usize>,
    /// Stem, record and how often, in the order of records.
    entries: Vec<(Term, u32, f32)>,
    lengths: Vec<f32>,
}

impl Builder {
    fn add(&mut self, record: &KnowledgeRecord) {
        let stems = Stems::new();
        let doc = self.lengths.len() as u32;
        let mut seen: Vec<(Term, f32)> = Vec::new();
        let mut take = |text: &str, weight: f32| {
            each_word(text, |word| {
                let term = match self.words.get(word.folded) {
                    Some(&term) => term,
                    None => self.new_word(&stems, word.folded),
                };
                seen.push((term, weight));
            });
        };
        take(&record.title, TITLE);
        record.tags.iter().for_each(|tag| take(tag, 1.0));
        take(&plain(&record.text), 1.0);

        seen.sort_unstable_by_key(|(term, _)| *term);
        let mut length = 0.0;
        for same in seen.chunk_by(|a, b| a.0 == b.0) {
            let term = same[0].0;
            let count: f32 = same.iter().map(|(_, weight)| weight).sum();
            if !self.is_stop[term as usize] {
                length += count;
            }
            self.frequencies[term as usize] += 1;
            self.entries.push((term, doc, count));
        }
        self.lengths.push(length);
    }

    fn new_word(&mut self, stems: &Stems, folded: &str) -> Term {
        let stem = stems.stem(folded);
        let next = self.stems.len() as Term;
        let term = *self.stems.entry(stem.into_boxed_str()).or_insert(next);
        if term == next {
            self.is_stop.push(is_stop_word(folded));
            self.frequencies.push(0);
        }
        self.words.insert(folded.into(), term);
        term
    }

    fn finish(self, records: Vec<KnowledgeRecord>) -> Index {
        let mut starts = Vec::with_capacity(self.frequencies.len() + 1);
        starts.push(0);
        for frequency in &self.frequencies {
            starts.push(starts[starts.len() - 1] + frequency);
        }
        let mut next = starts.clone();
        let mut docs = vec![0; self.entries.len()];
        let mut impacts = vec![0.0; self.entries.len()];
        let average = (self.lengths.iter().sum::<f32>() / self.lengths.len().max(1) as f32).max(1.0);
        for (term, doc, count) in self.entries {
            let frequency = self.frequencies[term as usize];
            let length = K1 * (1.0 - B + B * self.lengths[doc as usize] / average);
            let at = next[term as usize];
            docs[at] = doc;
            impacts[at] = idf(records.len(), frequency) * (K1 + 1.0) * count / (count + length);
            next[term as usize] += 1;
        }
        let filters = FilterIndex::new(&records);
        let vocabulary = Vocabulary::new(self.words.keys().map(AsRef::as_ref));
        Index { records, words: self.words, stems: self.stems, starts, docs, impacts, filters, vocabulary }
    }
}
