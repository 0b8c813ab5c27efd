//! From records to postings.

use quarterdeck_contracts::KnowledgeRecord;
use serde_json::Value;

use super::postings::Postings;
use super::records::Records;
use super::strings::Lexicon;
use super::{Doc, FilterIndex, Index, Term};
use crate::text::{Stems, each_word, is_stop_word, plain};

/// A word of a title counts so often.
const TITLE_WEIGHT: u32 = 2;

impl Index {
    /// Indexes records by title, tags and text. Of two records with one id the first is kept.
    pub(crate) fn new(mut records: Vec<KnowledgeRecord>) -> Self {
        records.sort_by(|a, b| a.id.cmp(&b.id));
        records.dedup_by(|later, first| later.id == first.id);
        let filters = FilterIndex::new(&records);
        let (mut builder, mut kept) = (Builder::default(), Records::default());
        for record in records {
            builder.add(&record);
            kept.push(&record.id, &body(&record));
        }
        kept.shrink();
        builder.finish(kept, filters)
    }
}

/// A record as JSON, without the fields that have nothing in them: those are a tenth of a short record.
fn body(record: &KnowledgeRecord) -> String {
    // A record holds nothing that JSON cannot say.
    let mut value = serde_json::to_value(record).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|name, value| {
            let is_empty = match value {
                Value::Null => true,
                Value::String(text) => text.is_empty(),
                Value::Array(list) => list.is_empty(),
                Value::Object(map) => map.is_empty(),
                _ => false,
            };
            !is_empty || matches!(name.as_str(), "id" | "title" | "text")
        });
    }
    value.to_string()
}

#[derive(Default)]
struct Builder {
    words: Lexicon,
    /// By word: its stem.
    terms: Vec<Term>,
    stems: Lexicon,
    /// By stem: whether it is what a stop word becomes. Stop words are found, but do not make a record longer.
    is_stop: Vec<bool>,
    frequencies: Vec<usize>,
    /// Stem, record and how often, in the order of records.
    entries: Vec<(Term, Doc, u32)>,
    lengths: Vec<f32>,
}

impl Builder {
    fn add(&mut self, record: &KnowledgeRecord) {
        let stems = Stems::new();
        let doc = self.lengths.len() as Doc;
        let mut seen: Vec<(Term, u32)> = Vec::new();
        let mut take = |text: &str, weight: u32| {
            each_word(text, |word| seen.push((self.term(&stems, word.folded), weight)));
        };
        take(&record.title, TITLE_WEIGHT);
        record.tags.iter().for_each(|tag| take(tag, 1));
        take(&plain(&record.text), 1);

        seen.sort_unstable_by_key(|(term, _)| *term);
        let mut length = 0;
        for same in seen.chunk_by(|a, b| a.0 == b.0) {
            let term = same[0].0;
            let count: u32 = same.iter().map(|(_, weight)| weight).sum();
            if !self.is_stop[term as usize] {
                length += count;
            }
            self.frequencies[term as usize] += 1;
            self.entries.push((term, doc, count));
        }
        self.lengths.push(length as f32);
    }

    fn term(&mut self, stems: &Stems, folded: &str) -> Term {
        let word = self.words.insert(folded) as usize;
        if word == self.terms.len() {
            let term = self.stems.insert(&stems.stem(folded));
            if term as usize == self.frequencies.len() {
                self.is_stop.push(is_stop_word(folded));
                self.frequencies.push(0);
            }
            self.terms.push(term);
        }
        self.terms[word]
    }

    fn finish(self, records: Records, filters: FilterIndex) -> Index {
        let postings = Postings::new(self.entries, &self.frequencies, self.lengths);
        Index::assemble(records, filters, self.words, self.terms, self.stems, postings)
    }
}
