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
        out.list(&self.filters.days, |day| day.map_or(0, |day| day.0).to_le_bytes());
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

impl Records {
    /// Room for so many records of so many bytes in all.
    pub(crate) fn with_capacity(records: usize, bytes: usize) -> Self {
        Self {
            ids: Strings::with_capacity(records, records * 24),
            bodies: Strings::with_capacity(records, bytes),
        }
    }

    /// As JSON.
    pub(crate) fn body(&self, doc: Doc) -> &str {
        self.bodies.get(doc as usize)
    }
}

impl Strings {
    /// Room for so many strings of so many bytes in all.
    pub(crate) fn with_capacity(strings: usize, bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), ends: Vec::with_capacity(strings) }
    }

    /// From the text of all and where each ends; `None` if those places do not divide it.
    pub(crate) fn from_parts(text: String, ends: Vec<usize>) -> Option<Self> {
        let divides = ends.is_sorted()
            && ends.last().copied().unwrap_or(0) == text.len()
            && ends.iter().all(|end| text.is_char_boundary(*end));
        divides.then_some(Self { text, ends })
    }

    /// The text of all, and where each ends.
    pub(crate) fn parts(&self) -> (&str, &[usize]) {
        (&self.text, &self.ends)
    }
}

impl Lexicon {
    /// From strings that are all different.
    pub(crate) fn from_strings(strings: Strings) -> Self {
        let mut lexicon = Self { strings, table: Vec::new() };
        lexicon.rehash(lexicon.strings.len());
        lexicon
    }
}

impl Postings {
    /// From what was kept; `None` if it does not belong together.
    pub(super) fn from_parts(
        starts: Vec<usize>,
        docs: Vec<Doc>,
        counts: Vec<u8>,
        large: Vec<(u64, u32)>,
        lengths: Vec<f32>,
    ) -> Option<Self> {
        let is_sound = starts.first() == Some(&0)
            && starts.is_sorted()
            && starts.last() == Some(&docs.len())
            && docs.len() == counts.len()
            && docs.iter().all(|doc| (*doc as usize) < lengths.len())
            && lengths.iter().all(|length| length.is_finite() && *length >= 0.0);
        is_sound.then(|| Self::with_norms(starts, docs, counts, large, lengths))
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
    let days: Vec<Option<Day>> = from.list(day)?;
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

/// Zero stands for no day.
fn day(bytes: [u8; 4]) -> Option<Day> {
    Some(u32::from_le_bytes(bytes)).filter(|number| *number != 0).map(Day)
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

    #[test]
    fn places_that_do_not_divide_a_text_are_refused() {
        for ends in [vec![], vec![1], vec![2, 1, 3], vec![1, 3], vec![4]] {
            assert_eq!(Strings::from_parts("æb".to_owned(), ends.clone()), None, "{ends:?}");
        }
        assert_eq!(Strings::from_parts("æb".to_owned(), vec![2, 2, 3]).unwrap().get(1), "");
    }

    #[test]
    fn parts_that_do_not_belong_together_are_refused() {
        let sound = |starts: &[usize], docs: &[Doc], counts: &[u8]| {
            Postings::from_parts(starts.to_vec(), docs.to_vec(), counts.to_vec(), Vec::new(), vec![1.0; 2])
                .is_some()
        };
        assert!(sound(&[0, 1, 2], &[0, 1], &[1, 1]));
        assert!(!sound(&[0, 1, 3], &[0, 1], &[1, 1]));
        assert!(!sound(&[0, 2, 1], &[0, 1], &[1, 1]));
        assert!(!sound(&[0, 1, 2], &[0, 2], &[1, 1]));
        assert!(!sound(&[0, 2], &[0, 1], &[1]));
        assert!(!sound(&[], &[], &[]));
    }

    #[test]
    fn words_keep_their_numbers_in_a_lexicon_that_was_read_again() {
        let mut lexicon = Lexicon::default();
        let word = |at: u32| format!("{:x}", at * 7_919);
        assert!((0..5_000).all(|at| lexicon.insert(&word(at)) == at));
        let (text, ends) = lexicon.strings().parts();
        let again = Lexicon::from_strings(Strings::from_parts(text.to_owned(), ends.to_vec()).unwrap());
        assert!((0..5_000).all(|at| again.find(&word(at)) == Some(at)));
        assert_eq!((again.find("nowhere"), again.find("")), (None, None));
    }
}
