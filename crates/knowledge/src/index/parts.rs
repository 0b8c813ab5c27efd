//! An index as bytes, so that the next start need not build it again.

use std::collections::HashMap;

use quarterdeck_contracts::{Namespace, RecordKind};

use super::postings::Postings;
use super::records::Records;
use super::strings::{Lexicon, Strings};
use super::{Doc, FilterIndex, Index};
use crate::bytes::{Reader, Writer};
use crate::day::Day;

/// Counted up whenever words are read, counted or written another way: an index of another version is built again.
const FORMAT_VERSION: u32 = 1;

impl Index {
    /// Everything but the records.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.number(FORMAT_VERSION);
        for strings in [self.words.strings(), self.stems.strings()] {
            write_strings(&mut out, strings);
        }
        out.list(&self.terms, |term| term.to_le_bytes());
        let Postings { starts, docs, counts, large, lengths, .. } = &self.postings;
        out.list(starts, |start| (*start as u64).to_le_bytes());
        out.list(docs, |doc| doc.to_le_bytes());
        out.list(counts, |count| [*count]);
        out.list(large, |(place, _)| place.to_le_bytes());
        out.list(large, |(_, count)| count.to_le_bytes());
        out.list(lengths, |length| length.to_le_bytes());
        let about = |doc: usize| self.filters.namespace_and_kind(doc as Doc);
        let docs: Vec<usize> = (0..self.records.len()).collect();
        out.list(&docs, |doc| [about(*doc).0 as u8]);
        out.list(&docs, |doc| [about(*doc).1 as u8]);
        out.list(&self.filters.days, |day| day.map_or(0, Day::number).to_le_bytes());
        let mut tags: Vec<_> = self.filters.tags.iter().collect();
        tags.sort_unstable();
        out.number(tags.len() as u32);
        for (tag, docs) in tags {
            out.bytes(tag.as_bytes());
            out.list(docs, |doc| doc.to_le_bytes());
        }
        out.finish()
    }
}

/// Everything of an index but its records.
pub(crate) struct Parts {
    words: Lexicon,
    stems: Lexicon,
    terms: Vec<u32>,
    postings: Postings,
    filters: FilterIndex,
}

impl Parts {
    /// Reads what [`Index::to_bytes`] wrote; `None` if it is of another version or does not belong together.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader::new(bytes);
        if from.number()? != FORMAT_VERSION {
            return None;
        }
        let words = Lexicon::from_strings(read_strings(&mut from)?);
        let stems = Lexicon::from_strings(read_strings(&mut from)?);
        let terms = from.list(u32::from_le_bytes)?;
        let starts = from.list(|start| u64::from_le_bytes(start) as usize)?;
        let docs = from.list(Doc::from_le_bytes)?;
        let counts = from.bytes()?.to_vec();
        let (places, many) = (from.list(u64::from_le_bytes)?, from.list(u32::from_le_bytes)?);
        let large = places.into_iter().zip(many).collect();
        let lengths = from.list(f32::from_le_bytes)?;
        let filters = read_filters(&mut from)?;
        let postings = Postings::from_parts(starts, docs, counts, large, lengths)?;
        let stem_count = stems.strings().len();
        let is_sound = from.is_empty()
            && filters.days.len() == postings.lengths.len()
            && postings.starts.len() == stem_count + 1
            && terms.len() == words.strings().len()
            && terms.iter().all(|term| (*term as usize) < stem_count);
        is_sound.then_some(Self { words, stems, terms, postings, filters })
    }

    /// The index of these records, or the records again if it is of others.
    pub(crate) fn index(self, records: Records) -> Result<Index, Records> {
        if records.len() != self.postings.lengths.len() {
            return Err(records);
        }
        let Self { words, stems, terms, postings, filters } = self;
        Ok(Index::assemble(records, filters, words, terms, stems, postings))
    }
}

fn write_strings(out: &mut Writer, strings: &Strings) {
    let (text, ends) = strings.parts();
    out.bytes(text.as_bytes());
    out.list(ends, |end| (*end as u64).to_le_bytes());
}

fn read_strings(from: &mut Reader<'_>) -> Option<Strings> {
    let text = std::str::from_utf8(from.bytes()?).ok()?.to_owned();
    Strings::from_parts(text, from.list(|end| u64::from_le_bytes(end) as usize)?)
}

fn read_filters(from: &mut Reader<'_>) -> Option<FilterIndex> {
    let all = |number: &u8, count: usize| usize::from(*number) < count;
    let namespaces = from.bytes()?;
    let kinds = from.bytes()?;
    let days: Vec<Option<Day>> = from.list(|day| Day::from_number(u32::from_le_bytes(day)))?;
    let is_sound = namespaces.len() == days.len()
        && kinds.len() == days.len()
        && namespaces.iter().all(|number| all(number, Namespace::ALL.len()))
        && kinds.iter().all(|number| all(number, RecordKind::ALL.len()));
    if !is_sound {
        return None;
    }
    let mut tags = HashMap::new();
    for _ in 0..from.number()? {
        let tag = std::str::from_utf8(from.bytes()?).ok()?.to_owned();
        let docs: Vec<Doc> = from.list(Doc::from_le_bytes)?;
        if docs.iter().any(|doc| *doc as usize >= days.len()) {
            return None;
        }
        tags.insert(tag, docs);
    }
    let namespace = |at: usize| Namespace::ALL[usize::from(namespaces[at])];
    let kind = |at: usize| RecordKind::ALL[usize::from(kinds[at])];
    Some(FilterIndex::from_parts(namespace, kind, tags, days))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Vec<quarterdeck_contracts::KnowledgeRecord> {
        let record = |at: usize| {
            serde_json::from_value(serde_json::json!({
                "id": format!("doc:{at}"), "type": (["doc", "person"][at % 2]),
                "namespace": (["studio", "public"][at % 2]),
                "title": format!("Title {at}"), "text": "ice ".repeat(at * 30 + 1), "tags": ["Même", format!("{at}")],
                "last_updated": if at == 1 { None } else { Some("2025-03-14") },
            }))
            .unwrap()
        };
        (0..12).map(record).collect()
    }

    fn records_of(index: &Index) -> Records {
        let mut records = Records::default();
        (0..index.records.len() as Doc)
            .for_each(|doc| records.push(index.records.id(doc), index.records.body(doc)));
        records
    }

    #[test]
    fn an_index_is_what_it_was() {
        let index = Index::new(records());
        let again = Parts::read(&index.to_bytes()).unwrap().index(records_of(&index)).ok().unwrap();
        assert_eq!(again.postings, index.postings);
        assert_eq!(again.filters, index.filters);
        assert_eq!((again.terms(), &again.terms), (index.terms(), &index.terms));
        assert_eq!(again.term("ice"), index.term("ice"));
        assert_eq!(again.to_bytes(), index.to_bytes());
    }

    #[test]
    fn bytes_that_are_cut_or_belong_to_others_are_refused() {
        let index = Index::new(records());
        let bytes = index.to_bytes();
        for length in (0..bytes.len()).step_by(7) {
            assert!(Parts::read(&bytes[..length]).is_none(), "{length}");
        }
        assert!(Parts::read(&bytes).unwrap().index(Records::default()).is_err());
        let mut newer = bytes;
        newer[0] += 1;
        assert!(Parts::read(&newer).is_none());
    }
}
